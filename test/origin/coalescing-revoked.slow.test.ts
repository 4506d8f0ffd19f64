/**
 * Requests that wait for another request's call to the origin, and may no longer call it when that
 * call ends.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { revokedBeforeKey } from '../../src/access/revocation/revocation.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { startWorld, type World } from '../access/relations/pipeline/gateway.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { ISSUER } from '../harness/issuer.ts'

/** Longer than an admission remains valid. */
const WAIT_MS = 1_100
const ROUTES: readonly RouteDefinition<'standard'>[] = [
  { method: 'GET', path: '/shared/:id', permission: 'orders:read', coalesce: true },
  {
    method: 'GET',
    path: '/orders/:id',
    permission: 'orders:read',
    coalesce: true,
    relation: { object: 'order:{params.id}', relation: 'viewer' },
  },
]

let world: World
let origin: TestServer
let isolate: ReturnType<World['isolate']>
let calls = 0
let release = Promise.withResolvers<void>()
beforeAll(async () => {
  world = await startWorld()
  origin = await startHttpServer(async (_request, response) => {
    calls += 1
    await release.promise
    // The response is not shared, so each waiting request must call the origin itself.
    response.setHeader('cache-control', 'no-store').end('[]')
  })
  isolate = world.isolate({ routes: ROUTES, env: { ORIGIN_URL: origin.url } })
})
beforeEach(() => {
  calls = 0
  release = Promise.withResolvers<void>()
})
afterAll(async () => {
  release.resolve()
  await origin?.close()
  await world?.close()
})

/**
 * Sends three simultaneous requests, two of which wait, and returns the result of those two after
 * `meanwhile`.
 */
async function sendThree(path: string, token: string, meanwhile: () => Promise<unknown>) {
  const leaving = new AbortController()
  const first = isolate.send(path, token, { signal: leaving.signal }).catch(() => undefined)
  await expect.poll(() => calls).toBe(1)
  const others = [isolate.send(path, token), isolate.send(path, token)]
  await meanwhile()
  await new Promise((done) => setTimeout(done, WAIT_MS))
  return {
    leave: () => leaving.abort(),
    async statuses() {
      release.resolve()
      const answers = await Promise.all(others)
      await first
      return answers.map(({ status }) => status)
    },
  }
}

const revokeBefore = async (subject: string) => {
  const key = await revokedBeforeKey(DEFAULT_KEYS, 'subject', ISSUER, subject)
  await world.redis.direct.set(key, Math.floor(Date.now() / 1000) + 5, 'EX', 600)
}

test('a caller that is revoked while its requests wait does not call the origin [S30]', async () => {
  const token = await world.token('anne')
  const { statuses } = await sendThree('/shared/1', token, () => revokeBefore('anne'))
  expect(await statuses()).toEqual([401, 401])
  expect(calls).toBe(1)
})

test('a revoked caller does not replace a first request that left [S30]', async () => {
  const token = await world.token('bob')
  const { leave, statuses } = await sendThree('/shared/2', token, () => revokeBefore('bob'))
  leave()
  expect(await statuses()).toEqual([401, 401])
  expect(calls).toBe(1)
})

test('a caller that lost the relation while its requests wait does not call the origin', async () => {
  const tuple = 'order:3#owner@user:carl'
  await world.write(null, tuple)
  const token = await world.token('carl')
  const { statuses } = await sendThree('/orders/3', token, () => world.remove(null, tuple))
  expect(await statuses()).toEqual([403, 403])
  expect(calls).toBe(1)
})

test('a caller that is still admitted calls the origin for each waiting request', async () => {
  const token = await world.token('dora')
  const { statuses } = await sendThree('/shared/4', token, async () => undefined)
  expect(await statuses()).toEqual([200, 200])
  expect(calls).toBe(3)
})
