/** Random policies and sequences of requests, for comparisons of what decides about them. */
import fc from 'fast-check'
import { definePolicy } from 'portcullis'
import type { TestedRequest } from 'portcullis/testing'
import * as z from 'zod'
import { Misconfigured } from '../../src/errors.ts'
import type { Policy } from '../../src/policy/policy.ts'

export interface RandomRequest {
  readonly line: string
  readonly request: Omit<TestedRequest, 'token'>
  /** The token is signed with an unknown key. */
  readonly isForged: boolean
}

const ROLES = ['reader', 'writer', 'admin', 'guest'] as const
const PERMISSIONS = ['orders:read', 'orders:write', 'notes:read', 'notes:write'] as const
const PATTERNS = [...PERMISSIONS, 'orders:*', 'notes:*', '*'] as const
const PATHS = ['/orders', '/orders/:id', '/orders/:id/items', '/notes', '/notes/:id', '/files/*']
const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const
const LIMITS = ['first', 'second', 'third'] as const
const UUID = '0193b0a4-7c1e-4d3a-9b1c-2f6e8d4a5b6c'

const some = <Value>(values: readonly Value[], max = values.length) =>
  fc.subarray([...values], { maxLength: max })

/** Schemas by a number, because zod's objects are not values of fast-check. */
const bodies = [
  undefined,
  z.strictObject({ item: z.string().min(1), count: z.int().min(1).max(9) }),
  z.looseObject({ item: z.string() }),
] as const
const queries = [undefined, z.strictObject({ page: z.coerce.number().int().min(1).optional() })]

const route = fc.record({
  method: fc.constantFrom(...METHODS),
  path: fc.constantFrom(...PATHS),
  permission: fc.option(fc.constantFrom(...PERMISSIONS), { freq: 5 }),
  observesPermission: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  limits: some(LIMITS, 2),
  requiresUuid: fc.boolean(),
  body: fc.nat(bodies.length - 1),
  query: fc.nat(queries.length - 1),
  maxBodyBytes: fc.constantFrom(undefined, 0, 24, 4_096),
  forwardAuthorization: fc.boolean(),
})

const limit = (index: number) =>
  fc.record({
    limit: fc.integer({ min: 1, max: 3 }),
    windowSeconds: fc.constant(3_600 * (index + 1)),
    by: fc.constantFrom('subject', 'client', 'tenant', 'address'),
    onUnavailable: fc.constant('deny' as const),
    cost: fc.constant(1),
  })

const definition = fc.record({
  roles: fc.record({
    reader: some(PATTERNS, 2),
    writer: some(PATTERNS, 3),
    admin: some(PATTERNS, 2),
  }),
  limits: fc.tuple(limit(0), limit(1), limit(2)),
  routes: fc.uniqueArray(route, {
    minLength: 2,
    maxLength: 8,
    selector: ({ method, path }) => `${method} ${path}`,
  }),
  failures: fc.constantFrom(3, 20),
  bansOffenders: fc.boolean(),
  stripHeaders: fc.constantFrom(undefined, ['X-Shop-*']),
})

/** Returns undefined for a definition that `definePolicy` refuses, such as one with look-alikes. */
function policyOf({
  routes,
  limits,
  failures,
  bansOffenders,
  stripHeaders,
  roles,
}: typeof definition extends fc.Arbitrary<infer Value> ? Value : never): Policy | undefined {
  // Which violations of limits lead to a ban depends on the time between them. And the name of the
  // limit that refuses depends on time if several are used up. So one limit is enforced at most.
  const enforced = bansOffenders ? -1 : 0
  const rules = LIMITS.map((name, index) => {
    const rule = limits[index as 0 | 1 | 2]
    return [name, index === enforced ? rule : { ...rule, mode: 'observe' as const }] as const
  })
  try {
    return definePolicy({
      roles,
      limits: Object.fromEntries(rules),
      abuse: {
        authenticationFailures: { limit: failures, windowSeconds: 3_600 },
        bans: bansOffenders && { violations: 4 },
      },
      ...(stripHeaders && { stripHeaders }),
      routes: routes.map(({ method, path, permission, ...row }) => ({
        method,
        path,
        limits: row.limits,
        forwardAuthorization: row.forwardAuthorization,
        ...(permission === null
          ? { anonymous: true as const }
          : {
              permission: row.observesPermission
                ? { name: permission, mode: 'observe' as const }
                : permission,
            }),
        ...(row.maxBodyBytes !== undefined && { maxBodyBytes: row.maxBodyBytes }),
        input: inputOf({ method, path, ...row }),
      })),
    })
  } catch (error) {
    if (error instanceof Misconfigured) return undefined
    throw error
  }
}

function inputOf({
  method,
  path,
  requiresUuid,
  ...row
}: {
  readonly method: string
  readonly path: string
  readonly requiresUuid: boolean
  readonly body: number
  readonly query: number
}) {
  const body = method === 'GET' || method === 'DELETE' ? undefined : bodies[row.body]
  const query = queries[row.query]
  return {
    ...(requiresUuid && path.includes(':id') && { params: z.strictObject({ id: z.uuid() }) }),
    ...(query && { query }),
    ...(body && { body }),
  }
}

const segment = fc.constantFrom('1', 'abc', UUID, 'a%20b', 'a%2Fb', 'A', 'x;y', 'é', '%zz')
const path = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...PATHS), segment).map(filled) },
  { weight: 1, arbitrary: fc.constantFrom('/', '/nothing', '/orders/', '/orders//1', '/ORDERS') },
)
const suffix = fc.constantFrom('', '', '', '?page=1', '?page=0', '?page=1&page=2', '?other=1')

function filled([pattern, value]: readonly [string, string]): string {
  return pattern.replace(':id', value).replace('*', `${value}/deep`)
}

const caller = fc.record(
  {
    sub: fc.constantFrom('alice', 'bob', 'carol'),
    roles: some(ROLES, 2),
    scope: fc.constantFrom('orders:read', 'orders:*', 'notes:read orders:write', 'openid'),
    client: fc.constantFrom('shop', 'app'),
    tenant: fc.constantFrom('acme', 'umbrella'),
    expiresInSeconds: fc.constantFrom(600, 600, 600, 600, 600, -120),
    audience: fc.constantFrom('https://api.test', 'https://api.test', 'https://other.test'),
    header: fc.constantFrom({}, {}, {}, {}, { typ: 'JWT' }),
  },
  { requiredKeys: ['sub', 'roles'] },
)

const body = fc.constantFrom<unknown>(
  undefined,
  { item: 'a', count: 1 },
  { item: '', count: 0 },
  { item: 'a', count: 1, more: true },
  '{"item":',
  '{"item":"a","item":"b","count":1}',
  'x'.repeat(100),
)
const headers = fc.constantFrom<Readonly<Record<string, string>>>(
  {},
  {},
  { 'x-auth-subject': 'root', 'x-own': '1' },
  { 'x-shop-id': '7', 'x-forwarded-host': 'evil.test' },
  { 'content-type': 'text/plain' },
)

/** `near`: a request to the route with this number. Otherwise the method and the path are random. */
const request = fc
  .record({
    method: fc.constantFrom(...METHODS, 'GET', 'HEAD', 'PATCH'),
    path,
    near: fc.option(fc.nat(1_000), { freq: 5 }),
    value: segment,
    suffix,
    as: fc.option(caller, { freq: 6 }),
    isForged: fc.integer({ min: 0, max: 12 }).map((n) => n === 0),
    body,
    headers,
    address: fc.constantFrom('198.51.100.1', '198.51.100.2', '2001:db8::1'),
  })
  .map((drawn) => ({ ...drawn, isForged: drawn.isForged && drawn.as !== null }))

type Drawn = typeof request extends fc.Arbitrary<infer Value> ? Value : never

function requestTo({ routes }: Policy, drawn: Drawn): RandomRequest {
  const { near, value, suffix, as, isForged, body, headers, address } = drawn
  const target = near === null ? undefined : routes[near % routes.length]
  const method = target?.method ?? drawn.method
  const path = target === undefined ? drawn.path : filled([target.path, value])
  return {
    line: `${method} ${path}${suffix}`,
    isForged,
    request: {
      headers,
      address,
      ...(as !== null && { as }),
      ...(method !== 'GET' && method !== 'HEAD' && body !== undefined && { body }),
    },
  }
}

/** Yields policies, each with a sequence of requests, until there are `count` requests. */
export function* randomPolicies(count: number, seed: number, each = 40) {
  const cases = fc.tuple(definition, fc.array(request, { minLength: each, maxLength: each }))
  let made = 0
  for (let round = 0; made < count; round += 1) {
    for (const [defined, requests] of fc.sample(cases, { seed: seed + round, numRuns: 20 })) {
      const policy = policyOf(defined)
      if (policy === undefined) continue
      if (made >= count) return
      const taken = requests.slice(0, count - made).map((drawn) => requestTo(policy, drawn))
      made += taken.length
      yield { policy, requests: taken }
    }
  }
}
