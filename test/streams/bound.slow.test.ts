/**
 * After a revocation has returned, no stream is open later than its bound, whatever happens to Redis: the
 * checker of admissions, with open streams in place of requests. `REVOCATIONS=1000` sets the number.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { newCallerOf, revokeAt } from '../access/admission/revocable.ts'
import { type Caller, countLate, type Outcome } from '../access/admission/revocation-bound.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { AUDIENCE, type TestKey } from '../harness/issuer.ts'
import { NEVER } from '../harness/never.ts'
import { redisVars, type TestRedis } from '../harness/redis.ts'
import { startStreamOrigin } from './origin.ts'

const REVOCATIONS = Number(process.env.REVOCATIONS ?? 12)
const AT_ONCE = REVOCATIONS > 100 ? 10 : 4
const ISOLATES = 3
const RECHECK_SECONDS = 1
/** One call to Redis may take until its deadline before it counts as failed. */
const DEADLINE_MS = 500
const BOUND_MS = RECHECK_SECONDS * 1_000 + DEADLINE_MS
const ADDRESS = '192.0.2.1'
const TIMEOUT_MS = 60_000 + REVOCATIONS * 2_500

let redis: TestRedis
let proxy: FaultProxy
let whole: TestGateway
let key: TestKey
beforeAll(async () => {
  whole = await startGateway({ origin: await startStreamOrigin(), audience: [AUDIENCE] })
  ;({ redis, key } = whole)
  const { hostname: host, port } = new URL(redis.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
})
afterAll(async () => {
  await proxy?.close()
  await whole?.close()
})

/** Creates an isolate whose callers have one stream each. A caller is admitted while it is open. */
function isolateOfStreams(recheckSeconds: number) {
  const policy = definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    abuse: { bans: false, authenticationFailures: false },
    routes: [
      {
        method: 'GET',
        path: '/events',
        permission: 'orders:read',
        recheckSeconds,
        recheckGraceSeconds: 0,
      },
    ],
  })
  const gateway = whole.client(policy, redisVars({ ...redis, url: proxy.url }, DEADLINE_MS))
  const streams = new Map<Caller, { isOpen: boolean }>()

  async function read(body: ReadableStream<Uint8Array>, stream: { isOpen: boolean }) {
    try {
      for await (const _ of body);
    } catch {
      // The stream was cut.
    }
    stream.isOpen = false
  }

  return async function send(caller: Caller): Promise<Outcome> {
    const known = streams.get(caller)
    if (known !== undefined) return known.isOpen ? 'admitted' : 'refused'
    const response = await gateway.send('/events', ADDRESS, caller.token)
    if (response.status === 503) return 'unavailable'
    if (response.status !== 200 || response.body === null) return 'refused'
    const stream = { isOpen: true }
    streams.set(caller, stream)
    void read(response.body, stream)
    return 'admitted'
  }
}

const count = (recheckSeconds: number, revocations: number) =>
  countLate({
    boundMs: BOUND_MS,
    revocations,
    atOnce: AT_ONCE,
    proxy,
    newCaller: () => newCallerOf(key),
    revoke: (caller, index) => revokeAt(redis, caller, index),
    isolates: Array.from({ length: ISOLATES }, () => isolateOfStreams(recheckSeconds)),
  })

test(
  'no stream is open later than the bound, with Redis healthy, slow or hung [S79]',
  async () => {
    const counts = await count(RECHECK_SECONDS, REVOCATIONS)
    expect(counts.late, NEVER).toBe(0)
    expect(counts.revoked).toBe(REVOCATIONS)
    expect(counts.judged).toBeGreaterThanOrEqual(REVOCATIONS * ISOLATES)
    // Streams were open before the revocation, and for some time after it.
    expect(counts.before).toBeGreaterThan(0)
    expect(counts.within).toBeGreaterThan(0)
    if (process.env.REVOCATIONS !== undefined) console.info(counts)
  },
  TIMEOUT_MS,
)

test(
  'the count finds streams that are checked too rarely',
  async () => {
    const { late } = await count(RECHECK_SECONDS * 10, 4)
    expect(late).toBeGreaterThan(0)
  },
  TIMEOUT_MS,
)
