/** Random policies with everything that keeps state, and random requests to explain under them. */
import fc from 'fast-check'
import * as z from 'zod'
import { mcp } from '../../../src/features/mcp/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { plans, quotas } from '../../../src/features/plans/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import type { LimitDefinition, LimitGroup } from '../../../src/policy/definition.ts'
import { definePolicy, type Policy } from '../../../src/policy/policy.ts'
import { ISSUER } from '../../harness/issuer.ts'

/** Long: no window ends during a test. */
const windowSeconds = 3_600
const RULE = { windowSeconds, onUnavailable: 'deny' } as const

export const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'note',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}

/** The kinds of limits. */
export const KINDS = [
  'counted',
  'leased',
  'by a function',
  'of @upstash',
  'plans',
  'quotas',
] as const

interface DrawnLimit {
  readonly kind: (typeof KINDS)[number] | 'large'
  readonly limit: LimitDefinition | LimitGroup
}

const ofKind =
  (kind: DrawnLimit['kind']) =>
  (limit: DrawnLimit['limit']): DrawnLimit => ({ kind, limit })

const drawnLimit = (isLeased: boolean): fc.Arbitrary<DrawnLimit> =>
  fc.oneof(
    fc
      .record({
        limit: fc.integer({ min: 2, max: 6 }),
        by: fc.constantFrom('subject', 'client', 'tenant', 'key', 'address'),
        cost: fc.constantFrom(1, 2),
        mode: fc.constantFrom('enforce', 'enforce', 'observe'),
      })
      .map((drawn): LimitDefinition => ({ ...RULE, ...drawn }))
      .map(ofKind('counted')),
    fc
      .integer({ min: 20, max: 60 })
      .map(
        (limit): LimitDefinition => ({
          ...RULE,
          limit,
          by: 'subject',
          // A policy without a view of revocations has no leases.
          ...(isLeased && { lease: { max: 8, ttlMs: 1_000 } }),
        }),
      )
      .map(ofKind(isLeased ? 'leased' : 'large')),
    fc
      .constant<LimitDefinition>({ ...RULE, limit: 3, by: ({ request }) => request.url })
      .map(ofKind('by a function')),
    fc
      .constant<LimitDefinition>({ ...RULE, limit: 3, by: 'subject', engine: upstash() })
      .map(ofKind('of @upstash')),
    fc
      .record({
        by: fc.constantFrom('key', 'subject', 'tenant'),
        perDay: fc.option(fc.constantFrom(1, 4), { nil: undefined }),
        concurrency: fc.constantFrom(1, 3),
      })
      .map(({ by, perDay, concurrency }) => {
        const free = { rate: '3/h', concurrency, ...(perDay !== undefined && { perDay }) } as const
        const pro = { rate: '50/h', perMonth: 60, concurrency: 9 } as const
        return plans({ plans: { free, pro }, default: 'free', by, slotSeconds: windowSeconds })
      })
      .map(ofKind('plans')),
    fc
      .record({
        by: fc.constantFrom<LimitDefinition['by']>('subject', ({ request }) => request.method),
        perDay: fc.constantFrom(1, 5),
        perMonth: fc.constantFrom(2, 9),
        concurrency: fc.constantFrom(1, 2),
      })
      .map((drawn) => quotas({ ...drawn, slotSeconds: windowSeconds }))
      .map(ofKind('quotas')),
  )

const FEW_VIOLATIONS = 3
const NAMES = ['one', 'two'] as const
const definition = fc.constantFrom(0, 0, 5_000).chain((maxStalenessMs) =>
  fc.record({
    limits: fc.tuple(drawnLimit(maxStalenessMs > 0), drawnLimit(maxStalenessMs > 0)),
    maxStalenessMs: fc.constant(maxStalenessMs),
    bans: fc.constantFrom('enforce', 'observe'),
    violations: fc.constantFrom(FEW_VIOLATIONS, 100, 100),
  }),
)

function policyOf({
  limits: [one, two],
  maxStalenessMs,
  bans,
  violations,
}: typeof definition extends fc.Arbitrary<infer Value> ? Value : never): Policy {
  const known = { permission: 'notes:read', limits: [...NAMES] } as const
  return definePolicy({
    roles: { reader: ['notes:read'], operator: ['portcullis:*'] },
    limits: { one: one.limit, two: two.limit },
    revocation: { maxStalenessMs },
    abuse: {
      authenticationFailures: { limit: 4, windowSeconds },
      bans: { violations, mode: bans },
    },
    relations: relations({ model: MODEL, issuers: [ISSUER] }),
    features: [operators(), signIn({ roles: ['reader'] })],
    routes: [
      { method: 'GET', path: '/notes', ...known },
      {
        method: 'POST',
        path: '/notes',
        ...known,
        input: { body: z.strictObject({ text: z.string() }) },
      },
      {
        method: 'GET',
        path: '/notes/:id',
        ...known,
        relation: { object: 'note:{params.id}', relation: 'viewer' },
      },
      { method: 'GET', path: '/page', ...known, session: 'browser' },
      { method: 'GET', path: '/bound', ...known, dpop: true },
      { method: 'GET', path: '/open', anonymous: true },
      ...mcp({
        path: '/mcp',
        ...known,
        tools: { read: { limits: ['two'] } },
        resources: { '*': true },
      }),
    ],
  })
}

export const CALLERS = ['bearer', 'other', 'bound', 'key', 'pro', 'session', 'forged'] as const
export type RandomCaller = (typeof CALLERS)[number] | 'assumed' | 'anonymous'

export interface RandomCall {
  readonly caller: RandomCaller
  readonly method: string
  readonly path: string
  readonly body: string | undefined
}

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read' } }
const call: fc.Arbitrary<RandomCall> = fc
  .record({
    caller: fc.constantFrom<RandomCaller>(...CALLERS, 'assumed', 'anonymous', 'key', 'pro'),
    target: fc.constantFrom(
      ['GET', '/notes'],
      ['GET', '/notes'],
      ['GET', '/notes/1'],
      ['GET', '/page'],
      ['GET', '/page'],
      ['GET', '/bound'],
      ['GET', '/open'],
      ['GET', '/nothing'],
      ['POST', '/notes', '{"text":"x"}'],
      ['POST', '/notes', '{}'],
      ['POST', '/mcp', JSON.stringify(CALL)],
      // Paths of the gateway itself.
      ['POST', '/oauth/sign-out'],
      ['GET', '/oauth/sign-in?return=/page'],
    ),
  })
  .map(({ caller, target: [method = '', path = '', body] }) => ({ caller, method, path, body }))

/** One request of each caller that its route admits, unless a limit or a ban refuses it. */
const ADMITTED: readonly RandomCall[] = (
  [
    ['bearer', '/notes/1'],
    ['bound', '/bound'],
    ['key', '/notes'],
    ['pro', '/notes'],
    ['session', '/page'],
    ['assumed', '/notes'],
    ['anonymous', '/open'],
  ] as const
).map(([caller, path]) => ({ caller, path, method: 'GET', body: undefined }))

/** Requests with forged tokens that lead to a ban of their address under some policies. */
const FORGED = Array<RandomCall>(FEW_VIOLATIONS).fill({
  caller: 'forged',
  method: 'GET',
  path: '/notes',
  body: undefined,
})

/** Returns policies with the kinds of their limits, each with requests that make state and requests to explain afterwards. */
export function randomCases(count: number, seed: number) {
  const calls = (length: number) => fc.array(call, { minLength: length, maxLength: length })
  return fc
    .sample(fc.tuple(definition, calls(8), calls(16)), { seed, numRuns: count })
    .map(([defined, sent, explained]) => ({
      policy: policyOf(defined),
      kinds: defined.limits.map(({ kind }) => kind),
      // Last, because a ban refuses every caller of the address.
      sent: defined.violations === FEW_VIOLATIONS ? [...sent, ...FORGED] : sent,
      explained: [...explained, ...ADMITTED],
    }))
}
