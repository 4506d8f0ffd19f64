/** Random policies and sequences of requests, for comparisons of what decides about them. */
import fc from 'fast-check'
import { definePolicy } from 'portcullis'
import { origins } from 'portcullis/origins'
import { relations } from 'portcullis/relations'
import type { TestedApiKey, TestedRequest } from 'portcullis/testing'
import * as z from 'zod'
import { Misconfigured } from '../../../src/errors.ts'
import type { Policy } from '../../../src/policy/policy.ts'

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
const HOSTS = ['api.test', '*.api.test'] as const
const ORIGINS = ['red', 'blue'] as const
/** Of the tester's issuer, and of its tokens. */
const AUDIENCE = 'https://api.test'
/** That some routes require. */
export const OTHER_AUDIENCE = 'https://other-api.test'

const model = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'item',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}
/** The relations that exist, for callers of every tenant. */
export const TUPLES = ['1', 'abc', UUID].flatMap((id) =>
  ['alice', 'dora'].map((subject) => ({
    object: `item:${id}`,
    relation: 'viewer',
    subject: `user:${subject}`,
  })),
)
export const TENANTS = [null, 'acme', 'umbrella'] as const

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
  dpop: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  relation: fc.option(fc.constantFrom('enforce', 'observe', 'enforce'), { freq: 2 }),
  host: fc.option(fc.constantFrom(...HOSTS), { freq: 2 }),
  origin: fc.option(fc.constantFrom(...ORIGINS), { freq: 3 }),
  audience: fc.integer({ min: 0, max: 4 }).map((n) => (n === 0 ? OTHER_AUDIENCE : undefined)),
  rewrites: fc.boolean(),
})

const limit = (index: number) =>
  fc.record({
    limit: fc.integer({ min: 1, max: 12 }),
    windowSeconds: fc.constant(3_600 * (index + 1)),
    by: fc.constantFrom('subject', 'client', 'tenant', 'address'),
    onUnavailable: fc.constant('deny' as const),
    cost: fc.constant(1),
  })

const definition = fc.record({
  roles: fc.record({
    reader: some(PATTERNS, 2),
    writer: some(PATTERNS, 3),
    admin: fc.constantFrom<readonly string[]>(['*'], ['orders:*', 'notes:*']),
  }),
  limits: fc.tuple(limit(0), limit(1), limit(2)),
  routes: fc.uniqueArray(route, {
    minLength: 2,
    maxLength: 8,
    selector: ({ method, path, host }) => `${method} ${host} ${path}`,
  }),
  failures: fc.constantFrom(3, 20),
  bansOffenders: fc.boolean(),
  stripHeaders: fc.constantFrom(undefined, ['X-Shop-*']),
  hasOrigins: fc.boolean(),
  nonceRequired: fc.boolean(),
})

/** Returns undefined for a definition that `definePolicy` refuses, such as one with look-alikes. */
function policyOf(
  {
    routes,
    limits,
    failures,
    bansOffenders,
    stripHeaders,
    roles,
    hasOrigins,
    nonceRequired,
  }: typeof definition extends fc.Arbitrary<infer Value> ? Value : never,
  urls: OriginUrls,
): Policy | undefined {
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
      tokens: { dpopNonceRequired: nonceRequired },
      relations: relations({ model, issuers: ['https://issuer.test'] }),
      ...(hasOrigins && {
        origins: origins({ red: { url: urls.red }, blue: { url: urls.blue } }),
      }),
      // A route for every host would hide the same one of a host below it.
      routes: routes.toSorted(hostsFirst).map(({ method, path, permission, relation, ...row }) => ({
        method,
        path,
        ...(hasOrigins && routingOf({ path, ...row })),
        ...(relation !== null &&
          permission !== null &&
          path.includes(':id') && {
            relation: { object: 'item:{params.id}', relation: 'viewer', mode: relation },
          }),
        ...(permission !== null && row.dpop && { dpop: true }),
        limits: row.limits.filter(
          (name) => permission !== null || limits[LIMITS.indexOf(name)]?.by === 'address',
        ),
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

const hostsFirst = (one: { host: string | null }, another: { host: string | null }) =>
  Number(one.host === null) - Number(another.host === null)

/** URLs of the origins, by name. */
export type OriginUrls = Readonly<Record<(typeof ORIGINS)[number], string>>

/** The fields of a route that need `origins()`. */
function routingOf({
  path,
  host,
  origin,
  audience,
  rewrites,
}: {
  readonly path: string
  readonly host: string | null
  readonly origin: (typeof ORIGINS)[number] | null
  readonly audience: string | undefined
  readonly rewrites: boolean
}) {
  return {
    ...(host !== null && { host }),
    ...(origin !== null && { origin }),
    ...(audience !== undefined && { audience }),
    ...(rewrites && path.endsWith('/:id') && { rewrite: '/store/:id' }),
    ...(rewrites && {
      requestHeaders: { set: { 'X-Region': 'eu' }, remove: ['X-Own'] },
      responseHeaders: { set: { 'X-Frame-Options': 'DENY' } },
    }),
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
    audience: fc.constantFrom<string | string[]>(
      AUDIENCE,
      [AUDIENCE, OTHER_AUDIENCE],
      'https://other.test',
    ),
    header: fc.constantFrom({}, {}, {}, {}, { typ: 'JWT' }),
    claims: fc.constantFrom({}, {}, {}, { cnf: { jkt: 'x'.repeat(43) } }),
  },
  { requiredKeys: ['sub', 'roles'] },
)

const apiKey = fc.record(
  {
    sub: fc.constantFrom('robot', 'alice'),
    roles: some(ROLES, 2),
    scope: fc.constantFrom(['orders:read'], ['notes:*']),
    tenant: fc.constantFrom('acme'),
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

const meant = fc.record({
  sub: fc.constantFrom('dora', 'dora', 'emil'),
  tenant: fc.constantFrom(undefined, 'acme'),
  id: fc.constantFrom(UUID, UUID, '1'),
  byKey: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  audience: fc.constantFrom([AUDIENCE, OTHER_AUDIENCE], [AUDIENCE, OTHER_AUDIENCE], AUDIENCE),
})

/**
 * `near`: a request to the route with this number. Otherwise the method and the path are random.
 * `meant`: the request has what the route requires, with few exceptions.
 */
const request = fc
  .record({
    method: fc.constantFrom(...METHODS, 'GET', 'HEAD', 'PATCH'),
    path,
    near: fc.option(fc.nat(1_000), { freq: 8 }),
    meant: fc.option(meant, { freq: 4 }),
    value: segment,
    suffix,
    as: fc.option(caller, { freq: 6 }),
    apiKey: fc.option(apiKey, { freq: 1 }),
    dpop: fc.boolean(),
    host: fc.constantFrom(undefined, undefined, 'api.test', 'b.api.test', 'other.test'),
    isForged: fc.integer({ min: 0, max: 12 }).map((n) => n === 0),
    body,
    headers,
    address: fc.constantFrom('198.51.100.1', '198.51.100.2', '2001:db8::1'),
  })
  .map((drawn) => ({
    ...drawn,
    isForged: drawn.isForged && drawn.as !== null && drawn.apiKey === null,
  }))

type Drawn = typeof request extends fc.Arbitrary<infer Value> ? Value : never
type Meant = typeof meant extends fc.Arbitrary<infer Value> ? Value : never

function requestTo({ routes }: Policy, drawn: Drawn): RandomRequest {
  const { near, value, suffix, isForged, body, headers, address, host } = drawn
  const target = near === null ? undefined : routes[near % routes.length]
  if (target !== undefined && drawn.meant !== null) return meantFor(target, drawn.meant)
  const method = target?.method ?? drawn.method
  const path = target === undefined ? drawn.path : filled([target.path, value])
  const credential = credentialOf(drawn)
  return {
    line: `${method} ${path}${suffix}`,
    isForged,
    request: {
      headers,
      address,
      ...credential,
      ...(host !== undefined && { host }),
      ...(drawn.dpop && !isForged && Object.keys(credential).length > 0 && { dpop: true }),
      ...(method !== 'GET' && method !== 'HEAD' && body !== undefined && { body }),
    },
  }
}

function credentialOf({
  as,
  apiKey,
}: Pick<Drawn, 'as' | 'apiKey'>): Pick<TestedRequest, 'as' | 'apiKey'> {
  if (apiKey !== null) return { apiKey: keyOf(apiKey) }
  return as === null ? {} : { as }
}

/** fast-check's objects have no prototype. */
const keyOf = (apiKey: object): TestedApiKey => ({ ...(apiKey as TestedApiKey) })

/** Returns a request that has what the route requires. */
function meantFor(
  { method, path, host, dpop, permission, input, maxBodyBytes }: Policy['routes'][number],
  { sub, tenant, id, byKey, audience }: Meant,
): RandomRequest {
  const caller = { sub, roles: ['admin'], ...(tenant !== undefined && { tenant }) }
  const hasBody = method !== 'GET' && method !== 'DELETE' && maxBodyBytes > 0
  return {
    line: `${method} ${filled([path, id])}`,
    isForged: false,
    request: {
      address: '198.51.100.9',
      ...(host !== undefined && { host: host.replace('*', 'b') }),
      ...(permission !== undefined &&
        (byKey && !dpop ? { apiKey: caller } : { as: { ...caller, audience } })),
      ...(permission !== undefined && dpop && { dpop: true }),
      ...(hasBody && input.body !== undefined && { body: { item: 'a', count: 1 } }),
    },
  }
}

/** Yields policies, each with a sequence of requests, until there are `count` requests. */
export function* randomPolicies(count: number, seed: number, urls: OriginUrls, each = 40) {
  const cases = fc.tuple(definition, fc.array(request, { minLength: each, maxLength: each }))
  let made = 0
  for (let round = 0; made < count; round += 1) {
    for (const [defined, requests] of fc.sample(cases, { seed: seed + round, numRuns: 20 })) {
      const policy = policyOf(defined, urls)
      if (policy === undefined) continue
      if (made >= count) return
      const taken = requests.slice(0, count - made).map((drawn) => requestTo(policy, drawn))
      made += taken.length
      yield { policy, requests: taken }
    }
  }
}
