/** A gateway with an external policy decision point. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../../../src/errors.ts'
import { authzen } from '../../../../src/features/authzen/index.ts'
import { openfga } from '../../../../src/features/openfga/index.ts'
import { type GatewayOptions, ROUTES, startWorld, type World } from '../pipeline/gateway.ts'
import { KINDS, type Kind } from './adapters.ts'
import { STORES, startAuthority, type TestAuthority, TOKEN } from './servers.ts'

let world: World
let server: TestAuthority
beforeAll(async () => {
  world = await startWorld()
  server = await startAuthority({})
})
afterAll(async () => {
  await world?.close()
  await server?.close()
})
beforeEach(() => {
  server.world = {
    none: ['order:1#viewer@user:anne'],
    acme: ['order:2#viewer@user:anne'],
    umbra: [],
  }
  server.behavior = undefined
  server.requests.length = 0
  world.reached.length = 0
})

/** The same data for both kinds: each tenant has its own store. */
const environment = () => ({
  OPENFGA_URL: server.url,
  OPENFGA_STORES: JSON.stringify({ '': STORES.none, acme: STORES.acme, umbra: STORES.umbra }),
  OPENFGA_TOKEN: TOKEN,
  AUTHZEN_URLS: JSON.stringify({
    '': `${server.url}/pdp`,
    acme: `${server.url}/pdp`,
    umbra: `${server.url}/pdp/`,
  }),
  AUTHZEN_TOKEN: TOKEN,
  AUTHORITY_TIMEOUT_MS: '5000',
})

const EXTERNAL = { openfga: openfga(), authzen: authzen() }
const isolate = (authority: Kind, relations: GatewayOptions['relations'] = {}) =>
  world.isolate({
    relations: { authority: EXTERNAL[authority], ...relations },
    routes: ROUTES.map((route) => ({ ...route, limits: [] })),
    env: environment(),
  })

describe.each(KINDS)('a gateway that uses %s for relations', (kind) => {
  test('admits only the callers that it allows, with one call each', async () => {
    const { statusOf, events } = isolate(kind)
    const [anne, bob] = [await world.token('anne'), await world.token('bob')]
    expect(await statusOf('/plain', bob)).toBe(200)
    expect(server.requests).toHaveLength(0)
    expect(await statusOf('/orders/1', anne)).toBe(200)
    expect(await statusOf('/orders/1', bob)).toBe(403)
    expect(await statusOf('/orders/2', anne)).toBe(403)
    expect(server.requests).toHaveLength(3)
    expect(world.reached).toEqual(['GET /plain', 'GET /orders/1'])
    expect(events.map(({ decision }) => decision)).toEqual(['allow', 'allow', 'deny', 'deny'])
    expect(JSON.stringify(events)).not.toContain(TOKEN)
  })

  test("queries the store of the caller's tenant", async () => {
    const { statusOf } = isolate(kind)
    const of = (tenant: string) => world.token('anne', { tenant })
    expect(await statusOf('/orders/2', await of('acme'))).toBe(200)
    expect(await statusOf('/orders/1', await of('acme'))).toBe(403)
    expect(await statusOf('/orders/2', await of('umbra'))).toBe(403)
    expect(server.requests).toHaveLength(3)
    expect(await statusOf('/orders/2', await of('unheard-of'))).toBe(403)
    expect(server.requests).toHaveLength(3)
  })

  test.each([
    ['rubbish', '{"allowed":"true","decision":1}', 200, 'malformed'],
    ['an error', `no ${TOKEN}`, 500, 'refused'],
    ['a refusal', '{"allowed":true,"decision":true}', 403, 'refused'],
  ])(
    'answers 503 while the decision point responds with %s [R06]',
    async (_, body, status, fault) => {
      const { send, events } = isolate(kind)
      const anne = await world.token('anne')
      server.behavior = (response) => response.writeHead(status).end(body)
      const response = await send('/orders/1', anne)
      expect(response.status).toBe(503)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      const problem = await response.text()
      expect(JSON.parse(problem).code).toBe('dependency_unavailable')
      expect(problem).not.toMatch(new RegExp(`${TOKEN}|authority|openfga|authzen`, 'i'))
      expect(events.at(-1)).toMatchObject({ decision: 'error', reason: `authority:${fault}` })
      expect(JSON.stringify(events)).not.toContain(TOKEN)
      expect(world.reached).toEqual([])
    },
  )

  test('stays ready while the breaker is open, and reports the breaker', async () => {
    const { send, statusOf } = isolate(kind)
    const anne = await world.token('anne')
    server.behavior = (response) => response.writeHead(500).end()
    for (let count = 0; count < 6; count++) expect((await send('/orders/1', anne)).status).toBe(503)
    expect(server.requests).toHaveLength(5)
    expect(await statusOf('/plain', anne)).toBe(200)
    const ready = await send('/-/readyz', undefined)
    expect(await ready.json()).toMatchObject({
      status: 'ready',
      breakers: { authority: 'open' },
    })
  })

  test('calls for each request, or caches an answer as long as the policy says', async () => {
    const anne = await world.token('anne')
    const always = isolate(kind)
    const seldom = isolate(kind, { maxStalenessMs: 60_000 })
    for (const { statusOf } of [always, seldom])
      for (let count = 0; count < 3; count++) expect(await statusOf('/orders/1', anne)).toBe(200)
    expect(server.requests).toHaveLength(4)
    server.world = {}
    expect(await always.statusOf('/orders/1', anne)).toBe(403)
    expect(await seldom.statusOf('/orders/1', anne)).toBe(200)
  })
})

test.each(KINDS)(
  'a policy that names %s is refused if the environment does not configure it [R31]',
  (kind) => {
    expect(() => world.isolate({ relations: { authority: EXTERNAL[kind] } })).toThrow(Misconfigured)
  },
)
