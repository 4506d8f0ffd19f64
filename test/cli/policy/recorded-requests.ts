/** Random pairs of policies, and the audit events of the same requests under both. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { Misconfigured } from '../../../src/errors.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import type { PolicyDefinition } from '../../../src/policy/definition.ts'
import { definePolicy, type Policy } from '../../../src/policy/policy.ts'
import { createIssuer } from '../../../src/testing/issuer.ts'
import { memoryServices } from '../../../src/testing/memory-services.ts'
import { createMemoryStore } from '../../../src/testing/memory-store.ts'
import { parseRequest } from '../../../src/testing/request.ts'
import { ROOT } from '../../harness/process.ts'

export interface RandomRequest {
  readonly line: string
  readonly host: string
  readonly subject: string | null
  /** The token is signed with a key that no issuer has. */
  readonly isForged: boolean
}

export interface RandomCaller {
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
}

const model = JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8'))
const PERMISSIONS = ['orders:read', 'orders:write', 'notes:read', 'notes:write'] as const
const PATTERNS = [...PERMISSIONS, 'orders:*', 'notes:*', '*'] as const
const ROLES = ['reader', 'writer', 'admin'] as const
const PATHS = [
  '/orders',
  '/orders/:id',
  '/orders/export',
  '/orders/:id/items',
  '/notes/:id?',
  '/notes/:id{[0-9]+}',
  '/files/*',
  '/files/secret',
  '/*',
]
const REQUEST_PATHS = [
  '/orders',
  '/orders/1',
  '/orders/export',
  '/orders/EXPORT',
  '/orders/1/items',
  '/orders/export/items',
  '/notes',
  '/notes/7',
  '/notes/seven',
  '/files',
  '/files/a/b',
  '/files/secret',
  '/files/Secret',
  '/elsewhere',
]
const METHODS = ['GET', 'POST', 'DELETE'] as const
const HOSTS = [
  ...['gateway.test', 'gateway.test', 'api.example.com', 'eu.example.com', 'us.example.com'],
  'shop.test',
] as const
const HOST_PATTERNS = ['api.example.com', '*.example.com', 'eu.example.com', 'shop.test'] as const

const route = fc.record({
  method: fc.constantFrom('GET', 'GET', ...METHODS),
  path: fc.constantFrom(...PATHS),
  host: fc.constantFrom(undefined, undefined, undefined, ...HOST_PATTERNS),
  origin: fc.constantFrom(undefined, 'main', 'main', 'other'),
  permission: fc.option(fc.constantFrom(...PERMISSIONS), { freq: 5 }),
  isObserved: fc.integer({ min: 0, max: 7 }).map((n) => n === 0),
  hasRelation: fc.integer({ min: 0, max: 7 }).map((n) => n === 0),
  dpop: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  limits: fc.constantFrom<'few'[]>([], [], [], ['few']),
})
type Row = typeof route extends fc.Arbitrary<infer Value> ? Value : never

const rolesOf = fc.record({
  reader: fc.subarray([...PATTERNS], { maxLength: 2 }),
  writer: fc.subarray([...PATTERNS], { maxLength: 2 }),
  admin: fc.subarray([...PATTERNS], { maxLength: 2 }),
})
const rows = fc.array(route, { minLength: 3, maxLength: 9 })
/** Many rows and roles of the second policy are those of the first. */
const pair = fc.record({
  roles: rolesOf,
  rows,
  otherRoles: fc.option(rolesOf),
  otherRows: fc.array(route, { maxLength: 3 }),
  removed: fc.nat(8),
  isFirst: fc.boolean(),
})
const caller = fc.record({
  roles: fc.subarray([...ROLES], { maxLength: 2 }),
  scopes: fc.constantFrom<readonly string[]>(
    ...[[], [], [], ['orders:read'], ['notes:*'], ['openid', 'billing:read'], ['notes:write']],
  ),
})
const request = fc.record({
  method: fc.constantFrom('GET', 'GET', 'HEAD', ...METHODS),
  path: fc.constantFrom(...REQUEST_PATHS),
  host: fc.constantFrom(...HOSTS),
  subject: fc.constantFrom(null, 'alice', 'bob', 'carol', 'dave'),
  isForged: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
  near: fc.option(fc.nat(1_000), { freq: 8 }),
  value: fc.constantFrom('1', '7', 'seven', 'export', 'EXPORT', 'secret'),
})
type DrawnRequest = typeof request extends fc.Arbitrary<infer Value> ? Value : never

/** Most requests are near a route of the first policy, because others have no route to replay. */
function requestTo(
  { routes }: Policy,
  { near, value, method, path, host, ...rest }: DrawnRequest,
): RandomRequest {
  const row = near === null ? undefined : routes[near % routes.length]
  if (row === undefined) return { ...rest, host, line: `${method} ${path}` }
  const filled = row.path
    .replace(/:id\{.*\}/, '7')
    .replace(/:id\??/, value)
    .replace('*', value)
  return {
    ...rest,
    host: row.host?.replace('*', 'eu') ?? host,
    line: `${method === 'HEAD' && row.method === 'GET' ? 'HEAD' : row.method} ${filled}`,
  }
}

function policyOf(roles: PolicyDefinition<string, string>['roles'], drawn: readonly Row[]) {
  try {
    return definePolicy({
      roles,
      limits: { few: { limit: 2, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' } },
      origins: origins({ main: { url: 'https://main.test' }, other: { url: 'https://b.test' } }),
      relations: relations({ model, issuers: [] }),
      routes: drawn.map(({ method, path, permission, host, origin, limits, ...row }) => ({
        method,
        path,
        limits,
        originSpelling: 'distinct-extensions' as const,
        ...(host !== undefined && { host }),
        ...(origin !== undefined && { origin }),
        ...(permission === null
          ? { anonymous: true as const }
          : {
              permission: row.isObserved
                ? { name: permission, mode: 'observe' as const }
                : permission,
              ...(row.hasRelation && {
                relation: { object: 'order:all', relation: 'viewer' } as const,
              }),
              ...(row.dpop && { dpop: true }),
            }),
      })),
    })
  } catch (error) {
    if (error instanceof Misconfigured) return undefined
    throw error
  }
}

/** Yields two policies, callers by subject, and requests, until there are `count` requests. */
export function* randomPairs(count: number, seed: number, each = 40) {
  const cases = fc.record({
    policies: pair,
    callers: fc.tuple(caller, caller, caller, caller),
    requests: fc.array(request, { minLength: each, maxLength: each }),
  })
  let made = 0
  for (let round = 0; made < count; round += 1) {
    for (const drawn of fc.sample(cases, { seed: seed + round, numRuns: 50 })) {
      const { roles, rows, otherRoles, otherRows, removed, isFirst } = drawn.policies
      const kept = rows.filter((_, at) => at !== removed)
      const before = policyOf(roles, rows)
      const after = policyOf(
        otherRoles ?? roles,
        isFirst ? [...otherRows, ...kept] : [...kept, ...otherRows],
      )
      if (before === undefined || after === undefined || made >= count) continue
      made += each
      const [alice, bob, carol, dave] = drawn.callers
      const callers = new Map(Object.entries({ alice, bob, carol, dave }))
      const requests = drawn.requests.map((one) => requestTo(before, one))
      yield { before, after, callers, requests }
    }
  }
}

const ISSUER = 'https://issuer.test'
const [issuer, forger] = await Promise.all([
  createIssuer({ issuer: ISSUER }),
  createIssuer({ issuer: ISSUER }),
])

/** Returns the audit events of the requests, from the pipeline of a policy with stores in memory. */
export async function record(
  policy: Policy,
  requests: readonly RandomRequest[],
  callers: ReadonlyMap<string, RandomCaller>,
): Promise<readonly AuditEvent[]> {
  const events: AuditEvent[] = []
  const now = Date.now
  const services = memoryServices({
    policy,
    publicUrl: 'https://gateway.test',
    issuers: [issuer.entry],
    store: createMemoryStore(now),
    auditSink: { record: (event) => void events.push(event) },
    origin: { fetch: async () => new Response() },
    hasRelation: ({ subject }) => subject.includes('alice'),
    now,
  })
  const gateway = createGateway(services, policy)
  for (const { line, host, subject, isForged } of requests) {
    const { roles = [], scopes = [] } = callers.get(subject ?? '') ?? {}
    const token =
      subject === null
        ? undefined
        : await (isForged ? forger : issuer).token({
            sub: subject,
            roles,
            ...(scopes.length > 0 && { scope: scopes }),
          })
    const added = {
      'cf-connecting-ip': `192.0.2.${events.length % 250}`,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    const behind: Promise<unknown>[] = []
    const response = await gateway.fetch(parseRequest(`https://${host}`, line, {}, added), {}, {
      waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
      passThroughOnException() {},
      props: {},
    } as ExecutionContext)
    await response.arrayBuffer()
    await Promise.allSettled(behind)
  }
  return events
}
