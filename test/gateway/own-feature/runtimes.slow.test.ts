/** The feature in `examples/feature` on both runtimes: its stage, its route, and its operators' call. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import policy from '../../../examples/feature/policy.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startWorkerd } from '../../origin/workerd.ts'

describe.each(['workerd', 'Node'] as const)('on %s', (runtime) => {
  let redis: Awaited<ReturnType<typeof startTestRedis>>
  let origin: TestServer
  let running: { stop(): Promise<void> }
  let url: string
  let send: (path: string, roles: readonly string[], init?: RequestInit) => Promise<Response>
  let originCalls = 0

  beforeAll(async () => {
    redis = await startTestRedis()
    await redis.direct.flushall()
    origin = await startHttpServer((_, response) => {
      originCalls += 1
      response.end('[]')
    })
    const [key, port] = [await createKey('idp'), await freePort()]
    url = `http://127.0.0.1:${port}`
    const vars = {
      ...redisVars(redis),
      ...{ PUBLIC_URL: url, ORIGIN_URL: origin.url, CHANGE_FREEZE_CONTACT: 'ops@notes.test' },
      ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: url, jwks: { keys: [key.publicJwk] } }]),
    }
    if (runtime === 'workerd') {
      const entry = join(import.meta.dirname, 'worker.ts')
      running = await startWorkerd({ entry, vars, port })
    } else {
      const env = { ...vars, AUDIT_DATABASE: undefined }
      const server = await serve({ policy, env, port, graceMs: 1_000 })
      running = { stop: () => server.close() }
    }
    send = async (path, roles, init = {}) => {
      const token = await mint(key, { claims: { aud: url, sub: 'olga', roles } })
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      return fetch(url + path, { ...init, headers })
    }
  })
  afterAll(async () => {
    await running?.stop()
    await origin?.close()
    await redis?.close()
  })

  const write = () => send('/notes', ['editor'], { method: 'POST', body: '{}' })
  const state = async () => (await fetch(`${url}/-/change-freeze`)).json()

  test('the call freezes, the stage refuses writes before the origin, and the route says so', async () => {
    expect([(await write()).status, originCalls]).toEqual([200, 1])
    expect(await state()).toEqual({ frozen: false, ticket: null })

    const body = JSON.stringify({ ticket: 'OPS-7', seconds: 600 })
    const call = { method: 'PUT', body }
    expect((await send('/-/admin/change-freeze', ['editor'], call)).status).toBe(403)
    expect((await send('/-/admin/change-freeze', ['release'], call)).status).toBe(204)

    const refused = await write()
    expect([refused.status, originCalls]).toEqual([423, 1])
    expect(await refused.json()).toMatchObject({ code: 'change_freeze_active' })
    expect(await state()).toEqual({ frozen: true, ticket: 'OPS-7' })
    expect((await send('/notes', ['editor'])).status).toBe(200)
  })
})
