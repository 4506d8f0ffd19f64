/** Credentials of schemes that only the origin verifies, by the whole gateway over a real Redis. */
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { Fault } from '../../../dev/fault-proxy/fault.ts'
import { startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { newAddress } from '../../harness/address.ts'
import { recordsOf, startControlled } from '../../harness/control.ts'
import { startGateway } from '../../harness/gateway.ts'
import { AUDIENCE, mint } from '../../harness/issuer.ts'
import { redisVars } from '../../harness/redis.ts'
import { unverifiedPolicy } from './unverified-policy.ts'

const origin = await startControlled(() => ({ status: 200, headers: {}, body: 'ok' }))
const whole = await startGateway({ origin, audience: [AUDIENCE] })
const { redis, key } = whole
const originCalls = async () => (await recordsOf(origin)).length
/** Of a call to a Redis that does not answer. */
const OUTAGE_TIMEOUT_MS = 250
const CREDENTIALS = ['Basic dTpw', 'Digest username="u", realm="r"', 'AWS4-HMAC-SHA256 a=b, c=d']

afterAll(whole.close)
beforeEach(() => redis.direct.flushall())

function gateway(sources = false, redisUrl = redis.url) {
  const timeoutMs = redisUrl === redis.url ? undefined : OUTAGE_TIMEOUT_MS
  return whole.client(unverifiedPolicy(sources), redisVars({ ...redis, url: redisUrl }, timeoutMs))
}

test.each(
  CREDENTIALS.flatMap((credential) => [
    ['a header', credential, (token: string) => ({ 'X-Token': token })] as const,
    ['a cookie', credential, (token: string) => ({ Cookie: `__Host-token=${token}` })] as const,
  ]),
)('with a token in %s, "%s" is 400 and reaches no origin', async (_, authorization, other) => {
  const { send } = gateway(true)
  const token = await mint(key, {})
  for (const path of ['/own', '/limited']) {
    const before = await originCalls()
    const headers = { authorization, ...other(token) }
    const response = await send(path, newAddress(), undefined, { headers })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'ambiguous_credentials' })
    expect(await originCalls()).toBe(before)
    const alone = await send(path, newAddress(), undefined, { headers: { authorization } })
    expect(alone.status).toBe(200)
    expect(await originCalls()).toBe(before + 1)
  }
})

test('a ban of the credentials of an address stops those that only the origin verifies', async () => {
  const address = newAddress()
  const { send } = gateway()
  expect((await send('/own', address, 'a.b.c')).status).toBe(401)
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  expect((await createBanList(rest, Date.now).list({ limit: 10 })).items).toMatchObject([
    { kind: 'address', refuses: 'credentials' },
  ])
  for (const { send } of [gateway(), gateway()])
    for (const path of ['/own', '/limited']) {
      for (const authorization of CREDENTIALS) {
        const before = await originCalls()
        const response = await send(path, address, undefined, { headers: { authorization } })
        expect(response.status).toBe(403)
        expect(await response.json()).toMatchObject({ code: 'banned' })
        expect(await originCalls()).toBe(before)
      }
      expect((await send(path, address)).status).toBe(200)
    }
})

const OUTAGES: readonly Fault[] = [
  { kind: 'refuse' },
  { kind: 'hang' },
  { kind: 'reset', afterBytes: 0 },
  { kind: 'answer', status: 500, body: '{}' },
]

test.each(OUTAGES)(
  'while Redis has the fault $kind, no unchecked credential reaches the origin',
  async (fault) => {
    const proxy = await startFaultProxy({
      target: { host: '127.0.0.1', port: Number(new URL(redis.url).port) },
    })
    try {
      await proxy.set(fault)
      const { send } = gateway(false, proxy.url)
      for (const path of ['/own', '/observed'])
        for (const authorization of CREDENTIALS) {
          const before = await originCalls()
          const response = await send(path, newAddress(), undefined, { headers: { authorization } })
          expect(response.status, path).toBe(503)
          expect(response.headers.get('retry-after')).not.toBeNull()
          expect(await originCalls()).toBe(before)
        }
      const [authorization = ''] = CREDENTIALS
      const before = await originCalls()
      // The limit of this route says that requests pass in an outage.
      const allowed = await send('/limited', newAddress(), undefined, {
        headers: { authorization },
      })
      expect(allowed.status).toBe(200)
      for (const path of ['/own', '/observed', '/limited'])
        expect((await send(path, newAddress())).status, path).toBe(200)
      expect(await originCalls()).toBe(before + 4)
    } finally {
      await proxy.close()
    }
  },
)
