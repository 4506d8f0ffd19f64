/** Requests in flight at two gateways on Node over one Redis, of which one is killed. */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type NodeGateway, type NodeProcess, startNodeGateway } from './gateway.ts'

/** The limit of the route in `policy.ts`. */
const LIMIT = 3

let gateway: NodeGateway
let other: NodeProcess
/** Responses that the origin has begun and not ended. */
const open = new Set<ServerResponse>()
let most = 0

beforeAll(async () => {
  gateway = await startNodeGateway({}, (request, response) => {
    request.resume()
    open.add(response)
    most = Math.max(most, open.size)
    response.once('close', () => open.delete(response))
    response.write('begun ')
  })
  other = await gateway.another()
})
afterAll(async () => {
  for (const response of open) response.destroy()
  await gateway?.close()
})

const KEY = 'pc:limit:inFlight-concurrency:*'
async function slots() {
  const [key = ''] = await gateway.redis.direct.keys(KEY)
  const [seconds, micros] = await gateway.redis.direct.time()
  const nowMicros = Number(seconds) * 1e6 + Number(micros)
  const members = await gateway.redis.direct.zrange(key, 0, -1, 'WITHSCORES')
  const ends = members.filter((_, index) => index % 2 === 1).map(Number)
  return ends.map((end) => end - nowMicros).filter((left) => left > 0)
}
/** Waits for an event that the gateway causes behind a response. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}

test('never more than the limit are at the origin; slots return after a response, an abort and a kill', async () => {
  const token = await gateway.token({ claims: { sub: 'alice', roles: ['reader'] } })
  const headers = { authorization: `Bearer ${token}` }
  const send = (url: string, signal?: AbortSignal) =>
    fetch(`${url}/slots`, { headers, ...(signal && { signal }) })

  const many = await Promise.all(
    Array.from({ length: 20 }, (_, index) => send(index % 2 ? gateway.url : other.url)),
  )
  const [admitted, refused] = [200, 429].map((code) => many.filter(({ status }) => status === code))
  expect(admitted?.length).toBe(LIMIT)
  expect(refused?.length).toBe(many.length - LIMIT)
  expect(refused?.[0]?.headers.get('retry-after')).toBe('1')
  expect(refused?.[0]?.headers.get('ratelimit-policy')).toBe(
    '"inFlight-concurrency";q=3;qu="concurrent-requests"',
  )
  expect(await refused?.[0]?.json()).toMatchObject({ code: 'rate_limited' })
  expect(open.size).toBe(LIMIT)

  for (const response of open) response.end('ended')
  expect(await admitted?.[0]?.text()).toBe('begun ended')
  await Promise.all((admitted ?? []).slice(1).map((response) => response.text()))
  await until(async () => (await slots()).length === 0)

  const aborter = new AbortController()
  await send(gateway.url, aborter.signal)
  expect((await slots()).length).toBe(1)
  aborter.abort()
  await until(async () => (await slots()).length === 0)

  const kept = await send(gateway.url)
  const lost = [await send(other.url), await send(other.url)]
  expect(lost.map(({ status }) => status)).toEqual([200, 200])
  expect((await send(gateway.url)).status).toBe(429)
  other.running.child.kill('SIGKILL')
  expect((await send(gateway.url)).status).toBe(429)
  // The killed gateway renews nothing. The other one renews its slot, which is held for 5 s, too.
  await until(async () => (await slots()).length === 1)
  const again = [await send(gateway.url), await send(gateway.url), await send(gateway.url)]
  expect(again.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(kept.status).toBe(200)
  expect(most).toBe(LIMIT)
})
