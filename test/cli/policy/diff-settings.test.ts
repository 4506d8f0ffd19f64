/** `policy diff` compares the settings of every feature, and says which policy is looser. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { diffPolicies } from '../../../cli/policy/diff.ts'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { console as consolePages } from '../../../src/features/console/index.ts'
import { forwardAuth } from '../../../src/features/forward-auth/index.ts'
import { german } from '../../../src/features/languages/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { signals } from '../../../src/features/signals/index.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { SettingEffect } from '../../../src/validators/feature.ts'

type Effect = 'widening' | 'narrowing' | 'neutral'
/** A value, another one, and the effect of the change to the other. Undefined: the default. */
type Row = readonly [before: unknown, after: unknown, Effect, path?: string]
/** Every option has a row: the compiler names one that is missing. */
type Rows<Create extends (definition: never) => Feature> = Record<
  keyof NonNullable<Parameters<Create>[0]>,
  readonly Row[]
>

const IDP = 'https://idp.example'
const idp = { issuer: IDP, audience: 'https://api.example' }

const signInRows: Rows<typeof signIn> = {
  idleSeconds: [
    [undefined, 3_600, 'widening'],
    [1_800, 600, 'narrowing'],
  ],
  absoluteSeconds: [[undefined, 86_400, 'widening']],
  maxSessions: [[10, 5, 'narrowing']],
  roles: [
    [undefined, ['reader'], 'widening'],
    [['reader', 'writer'], ['reader'], 'narrowing'],
    [['reader'], ['writer'], 'widening'],
  ],
  requestsPerMinute: [[undefined, 60, 'narrowing']],
  theme: [[{ accent: '#0a5' }, { accent: '#05a' }, 'neutral', 'theme.accent']],
  branding: [[undefined, { name: 'Bank' }, 'neutral']],
}
const operatorRows: Rows<typeof operators> = {
  endedApiKeyDays: [[undefined, 30, 'neutral']],
  sessions: [
    [undefined, true, 'widening'],
    [true, { authentication: { maxAgeSeconds: 900 } }, 'narrowing', 'authentication.maxAgeSeconds'],
    [
      { authentication: { maxAgeSeconds: 900 } },
      { authentication: { maxAgeSeconds: 9_000 } },
      ...(['widening', 'authentication.maxAgeSeconds'] as const),
    ],
  ],
}
const consoleRows: Rows<typeof consolePages> = {
  authentication: [
    [undefined, { acr: ['mfa'] }, 'narrowing', 'authentication.acr'],
    [{ acr: ['mfa'] }, { acr: ['mfa', 'pwd'] }, 'widening', 'authentication.acr'],
  ],
}
const forwardAuthRows: Rows<typeof forwardAuth> = {
  proxy: [['traefik', 'nginx', 'widening']],
  withoutBody: [[undefined, ['GET /orders'], 'widening']],
}
const serverRows: Rows<typeof authorizationServer> = {
  profile: [[undefined, 'fapi2', 'narrowing']],
}
const codeRows: Rows<typeof authorizationCode> = {
  scopes: [[undefined, { 'orders:read': 'Orders' }, 'neutral']],
  sessionSeconds: [[undefined, 3_600, 'narrowing']],
  redirectSchemes: [[undefined, ['cursor'], 'widening']],
  documents: [
    [undefined, false, 'narrowing'],
    [false, {}, 'widening'],
    [undefined, { allow: ['claude.ai'] }, 'narrowing', 'documents.allow'],
    [{}, { deny: ['claude.ai'] }, 'narrowing', 'documents.deny'],
    [{ deny: ['a.ex'] }, { deny: ['b.ex'] }, 'widening', 'documents.deny'],
    [{ deny: ['a.ex', 'b.ex'] }, { deny: ['b.ex', 'c.ex'] }, 'widening', 'documents.deny'],
    [{ deny: ['*.a.ex'] }, { deny: ['x.a.ex'] }, 'widening', 'documents.deny'],
    [{ deny: ['a.ex', 'b.ex'] }, { deny: ['b.ex'] }, 'widening', 'documents.deny'],
    [{ deny: ['a.ex', 'b.ex'] }, { deny: ['b.ex', 'a.ex'] }, 'neutral', 'documents.deny'],
    [{ allow: ['a.ex'] }, { allow: ['b.ex'] }, 'widening', 'documents.allow'],
    [{}, { loopback: true }, 'widening', 'documents.loopback'],
  ],
  identityAssertions: [[[IDP], undefined, 'narrowing']],
  registration: [
    [undefined, true, 'widening'],
    [{ perAddress: 5 }, { perAddress: 50 }, 'widening', 'registration.perAddress'],
    [true, { unusedSeconds: 60 }, 'narrowing', 'registration.unusedSeconds'],
  ],
}
const signalRows: Rows<typeof signals> = {
  transmitters: [
    [[idp], [idp, { ...idp, issuer: 'https://b' }], 'narrowing', 'transmitters.https://b'],
    // Fewer events, or other actions: which callers it admits is not known.
    [
      [idp],
      [{ ...idp, events: ['session-revoked'] }],
      ...(['widening', `transmitters.${IDP}.events`] as const),
    ],
  ],
  requestsPerMinute: [[undefined, 60, 'narrowing']],
}

interface Case {
  readonly create: (definition: never) => Feature
  readonly rows: Readonly<Record<string, readonly Row[]>>
  readonly needs?: readonly Feature[]
  readonly base?: object
}

const CASES: Readonly<Record<string, Case>> = {
  signIn: { create: signIn, rows: signInRows },
  operators: { create: operators, rows: operatorRows, needs: [signIn()] },
  console: { create: consolePages, rows: consoleRows, needs: [operators(), signIn()] },
  forwardAuth: { create: forwardAuth, rows: forwardAuthRows },
  authorizationServer: { create: authorizationServer, rows: serverRows },
  authorizationCode: {
    create: authorizationCode,
    rows: codeRows,
    needs: [authorizationServer(), signIn()],
  },
  signals: { create: signals, rows: signalRows, base: { transmitters: [idp] } },
}

function policyWith({ create, needs = [], base = {} }: Case, option: string, value: unknown) {
  const definition = { ...base, ...(value !== undefined && { [option]: value }) }
  return definePolicy({
    roles: { reader: ['orders:read'], writer: ['orders:write'] },
    limits: {},
    features: [...needs, create(definition as never)],
    routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
  })
}

const OPPOSITE: Readonly<Record<Effect, Effect>> = {
  ...{ widening: 'narrowing', narrowing: 'widening', neutral: 'neutral' },
}
/** Directions that no setting states, or that a change in both directions has. */
const isUnknown = (text: string) => !/: (?:looser|tighter)$/.test(text)

/** Reports whether the lists at the end of a path have the same length: entries are added and removed. */
function isExchange(path: string, ...values: readonly unknown[]): boolean {
  const name = path.split('.').at(-1) ?? ''
  const [one, another] = values.map((value) =>
    Array.isArray(value) ? value : (value as Record<string, unknown> | undefined)?.[name],
  )
  return Array.isArray(one) && Array.isArray(another) && one.length === another.length
}

const rows = Object.entries(CASES).flatMap(([name, each]) =>
  Object.entries(each.rows).flatMap(([option, list]) =>
    list.map((row) => [name, option, row, each] as const),
  ),
)

test.each(rows)(
  'a change of %s(): %s is reported with its effect: %j',
  (name, option, row, each) => {
    const [before, after, effect, path = option] = row
    const [one, another] = [before, after].map((value) => policyWith(each, option, value))
    if (one === undefined || another === undefined) throw new Error('no policy')
    expect(diffPolicies(one, one)).toEqual([])
    const [change, ...others] = diffPolicies(one, another)
    expect([change?.effect, change?.of, others]).toEqual([effect, `features.${name}.${path}`, []])
    const [back] = diffPolicies(another, one)
    if (!isExchange(path, before, after) && !isUnknown(change?.text ?? ''))
      expect([back?.effect, back?.of]).toEqual([OPPOSITE[effect], change?.of])
  },
)

/** A feature of an app with one setting. */
const own = (effect: SettingEffect, value: unknown): Feature => ({
  ...{ name: 'own', settings: { value }, effects: { value: effect } },
})

test.each([
  ['less', 'strict', 'lenient'],
  ['more', 'strict', 'lenient'],
  ['bound', 'strict', 'lenient'],
  ['less', 5, true],
  ['more', 5, true],
  ['more', ['a'], 'b'],
  ['less', ['a'], 'b'],
] as const)(
  'of two values without an order, each is looser than the other: %s of %j and %j',
  (effect, one, another) => {
    const [before, after] = [one, another].map((value) =>
      policyWith({ create: () => own(effect, value), rows: {} }, '', undefined),
    )
    if (before === undefined || after === undefined) throw new Error('no policy')
    for (const changes of [diffPolicies(before, after), diffPolicies(after, before)])
      expect(changes.map((change) => change.effect)).toEqual(['widening'])
  },
)

test('a definition of the defaults is no change', () => {
  const terms = { idleSeconds: 1_800, absoluteSeconds: 43_200, maxSessions: 10, roles: [] }
  const of = (features: Feature[]) =>
    policyWith({ create: () => features[0] as Feature, rows: {} }, '', undefined)
  expect(diffPolicies(of([signIn()]), of([signIn(terms)]))).toEqual([])
})

test('every feature that can be configured is in this table', () => {
  const folder = join(import.meta.dirname, '../../../src/features')
  const configurable = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return []
    const text = readFileSync(join(folder, entry.name, 'index.ts'), 'utf8')
    return [...text.matchAll(/export function (\w+)\(\w[^)]*\): Feature\b/g)].map(
      ([, name]) => name,
    )
  })
  expect(configurable.length).toBeGreaterThan(5)
  expect(new Set(configurable)).toEqual(new Set(Object.keys(CASES)))
})

test('a changed text of a page is named by its place, with both values, and not as a part of JSON', () => {
  const languageWith = (button: string) => ({
    ...german,
    texts: { ...german.texts, signIn: { ...german.texts.signIn, 'signOut.button': button } },
  })
  const policyOf = (signOut: string) =>
    definePolicy({
      features: [
        authorizationServer(),
        signIn({ branding: { name: 'Bank', languages: [languageWith(signOut)] } }),
      ],
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/open', anonymous: true }],
    })
  const texts = diffPolicies(policyOf('Abmelden'), policyOf('Raus hier')).map(({ text }) => text)
  expect(texts).toEqual([
    'features.signIn.branding.languages[0].texts.signIn.signOut.button: changes from "Abmelden" to "Raus hier"',
  ])
})
