/** `policy diff` says what a feature that is added or removed as a whole means for callers. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { diffPolicies } from '../../../cli/policy/diff.ts'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { console as consolePages } from '../../../src/features/console/index.ts'
import { cors } from '../../../src/features/cors/index.ts'
import { forwardAuth } from '../../../src/features/forward-auth/index.ts'
import { introspection } from '../../../src/features/introspection/index.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { otlp } from '../../../src/features/otlp/index.ts'
import { plans, quotas } from '../../../src/features/plans/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { signals } from '../../../src/features/signals/index.ts'
import { signatures } from '../../../src/features/signatures/index.ts'
import { defineFeature } from '../../../src/gateway/own-feature/define-feature.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

type Definition = Parameters<typeof definePolicy>[0]
type Route = Definition['routes'][number]

const transmitters = [{ issuer: 'https://idp.example', audience: 'https://api.example' }] as const

/** The effects of adding and of removing each feature of the list `features`. */
const LISTED = [
  ['authorizationServer', authorizationServer(), 'widening', 'narrowing'],
  ['authorizationCode', authorizationCode(), 'widening', 'narrowing'],
  ['signIn', signIn(), 'widening', 'narrowing'],
  ['operators', operators(), 'widening', 'narrowing'],
  ['console', consolePages(), 'widening', 'narrowing'],
  ['forwardAuth', forwardAuth({ proxy: 'traefik' }), 'widening', 'narrowing'],
  ['openapi', openapi(), 'widening', 'narrowing'],
  // Issuers of opaque tokens are accepted, but JWTs of others are no longer verified by a call.
  ['introspection', introspection(), 'widening', 'widening'],
  // Without it, subjects that a provider has disabled are admitted.
  ['signals', signals({ transmitters }), 'narrowing', 'widening'],
  ['otlp', otlp(), 'neutral', 'neutral'],
  // What the code of an app decides is not known.
  ['own', defineFeature({ name: 'own', create: () => ({}) }), 'widening', 'widening'],
] as const

const policyOf = (changes: Partial<Definition> = {}, route: Partial<Route> = {}) =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    routes: [{ method: 'POST', path: '/orders', permission: 'orders:read', ...route } as Route],
    ...changes,
  })
const effectsOf = (...policies: Parameters<typeof diffPolicies>) =>
  diffPolicies(...policies).map(({ effect }) => effect)

test.each(LISTED)(
  'adding %s() and removing it have their own effects',
  (name, feature, added, removed) => {
    const others = LISTED.map(([, one]) => one).filter((one) => one !== feature)
    const [without, having] = [
      policyOf({ features: others.filter(({ requires = [] }) => !requires.includes(name)) }),
      policyOf({
        features: [...others.filter(({ requires = [] }) => !requires.includes(name)), feature],
      }),
    ]
    const [change, ...more] = diffPolicies(without, having)
    expect([change?.effect, change?.of, more]).toEqual([added, 'features', []])
    expect(change?.text).toContain(name)
    const [back, ...further] = diffPolicies(having, without)
    expect([back?.effect, back?.of, further]).toEqual([removed, 'features', []])
  },
)

describe('a feature behind a field', () => {
  const limited = (standard: Definition['limits'][string]) =>
    policyOf({ limits: { standard } }, { limits: ['standard'] })
  const small = { plans: { free: '5/min', pro: '50/min' }, default: 'free' } as const

  test.each([
    ['signatures', policyOf({}, { inspect: { signatures: signatures() } })],
    ['plans', limited(plans(small))],
    ['quotas', limited(quotas({ perDay: 100 }))],
  ])('%s protects: its removal widens', (_name, policy) => {
    expect(new Set(effectsOf(policy, policyOf()))).toEqual(new Set(['widening']))
    expect(new Set(effectsOf(policyOf(), policy))).toEqual(new Set(['narrowing']))
  })

  test('signatures that are no longer enforced widen', () => {
    const [enforced, observed] = (['enforce', 'observe'] as const).map((mode) =>
      policyOf({}, { inspect: { signatures: signatures({ mode }) } }),
    )
    if (!enforced || !observed) throw new Error('no policy')
    expect(effectsOf(enforced, observed)).toEqual(['widening'])
  })

  test('cors() admits pages: its removal narrows', () => {
    const policy = policyOf({}, { cors: cors({ origins: ['https://app.example'] }) })
    expect(effectsOf(policy, policyOf())).toEqual(['narrowing'])
    expect(effectsOf(policyOf(), policy)).toEqual(['widening'])
  })

  test.each<[string, Definition['limits'][string], Definition['limits'][string], string]>([
    [
      'a larger plan that is not the default',
      plans({ ...small, plans: { free: '5/min', pro: '500/min' } }),
      plans(small),
      'pro',
    ],
    [
      'a plan without a limit',
      plans({ plans: { free: '5/min', pro: { perDay: 10 } }, default: 'free' }),
      plans({ plans: { free: '5/min', pro: { rate: '5/min', perDay: 10 } }, default: 'free' }),
      'pro',
    ],
    ['another default plan', plans({ ...small, default: 'pro' }), plans(small), 'standard'],
  ])('%s is reported, in both directions', (_name, larger, smaller, names) => {
    const [wide, narrow] = [limited(larger), limited(smaller)]
    const changes = diffPolicies(narrow, wide)
    expect(changes.map(({ effect }) => effect)).toContain('widening')
    expect(changes.map(({ text }) => text).join()).toContain(names)
    expect(effectsOf(wide, narrow)).toContain('narrowing')
    expect(effectsOf(wide, wide)).toEqual([])
  })
})

test('every feature of the list states its effect, and is in this table', () => {
  const folder = join(import.meta.dirname, '../../../src/features')
  const listed = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return []
    const text = readFileSync(join(folder, entry.name, 'index.ts'), 'utf8')
    return [...text.matchAll(/export function (\w+)\([^)]*\): Feature\b/g)].map(([, name]) => name)
  })
  const own = LISTED.filter(([name]) => name !== 'own')
  expect(new Set(listed)).toEqual(new Set(own.map(([name]) => name)))
  for (const [name, feature] of own)
    expect([name, feature.presence]).toEqual([name, expect.anything()])
})
