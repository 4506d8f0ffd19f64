/** The breaker in front of Redis, over a real Redis behind a fault proxy. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { addressBanKey } from '../../src/access/abuse/ban.ts'
import { type AdmissionVerdict, createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../src/errors.ts'
import {
  createCircuitBreaker,
  DEFAULT_FAILURES,
  FIRST_PERIOD_MS,
  MAX_PERIOD_MS,
  passiveBreakerOf,
} from '../../src/isolate/circuit-breaker.ts'
import { sentOnce } from '../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { limitOf, nowSeconds, principal } from '../access/admission/callers.ts'
import { NEVER } from '../harness/never.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { FAULTS, RUBBISH } from './rubbish.ts'

const ADDRESS = '192.0.2.1'
const BANNED_ADDRESS = '192.0.2.66'

let redis: TestRedis
let proxy: FaultProxy
beforeAll(async () => {
  redis = await startTestRedis()
  proxy = await startFaultProxy({
    target: { host: '127.0.0.1', port: Number(new URL(redis.url).port) },
  })
})
afterAll(async () => {
  await proxy.close()
  await redis.close()
})
beforeEach(async () => {
  await proxy.set({ kind: 'none' })
  await redis.direct.flushall()
})

/** Creates an isolate with its own breaker, its own memory, and a clock that the test sets. */
function isolate(timeoutMs = 150) {
  let nowMs = Date.now()
  const outcomes: string[] = []
  const breaker = createCircuitBreaker({ name: 'redis', now: () => nowMs, random: () => 0 })
  const connection = { url: proxy.url, token: redis.token, timeoutMs }
  const rest = createRedisRest({
    ...connection,
    breaker,
    onCall: (outcome) => outcomes.push(outcome),
  })
  const patient = createRedisRest({ ...connection, breaker, timeoutMs: 20_000 })
  const admission = createAdmission({ store: createRedisAdmissionStore(rest), now: Date.now })
  return {
    breaker,
    rest,
    admission,
    outcomes,
    passive: createRedisRest({ ...connection, breaker: passiveBreakerOf(breaker) }),
    /** A client without a deadline. */
    patientPing: () => patient.send([['PING']]),
    pass(ms: number) {
      nowMs += ms
    },
    ping: () => rest.send([['PING']]),
  }
}

const octets = () => proxy.bytes().fromClients
const failed = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable('the call was answered'),
    (error: unknown) => error,
  )

describe('while the breaker is open', () => {
  test.each<[string, Fault, string]>([
    ['silence', { kind: 'hang' }, 'timeout'],
    ['no connection', { kind: 'refuse' }, 'unreachable'],
    ['a page of HTML', RUBBISH[1]?.[1] ?? { kind: 'none' }, 'malformed'],
    ['an error status', { kind: 'answer', status: 500, body: '{"error":"x"}' }, 'refused'],
  ])('%s: no call is sent, and each error names the fault [R02, R05]', async (_, fault, name) => {
    // Only silence is detected by the deadline.
    const { breaker, ping, outcomes } = isolate(name === 'timeout' ? 150 : 5_000)
    await proxy.set(fault)
    while (breaker.state() === 'closed')
      expect(await failed(ping())).toMatchObject({ fault: name, shortCircuited: false })
    expect(outcomes).toEqual(Array(DEFAULT_FAILURES).fill(name))
    const [sent, { accepted }] = [octets(), proxy.connections()]
    for (let count = 0; count < 100; count++)
      expect(await failed(ping())).toMatchObject({
        dependency: 'redis',
        fault: name,
        shortCircuited: true,
        retryAfterSeconds: 1,
      })
    expect([octets(), proxy.connections().accepted]).toEqual([sent, accepted])
    expect(outcomes).toEqual(Array(DEFAULT_FAILURES).fill(name))
  })

  test('one probe in each period; after the first success every request makes one call [R02, R32]', async () => {
    const { breaker, ping, patientPing, pass } = isolate()
    await proxy.set({ kind: 'hang' })
    while (breaker.state() === 'closed') await failed(ping())
    const before = redis.calls()
    for (let period = 0; period < 3; period++) {
      pass(MAX_PERIOD_MS)
      const probe = failed(ping())
      expect(breaker.state()).toBe('half_open')
      // While the probe is in progress, no request waits for it.
      for (let count = 0; count < 20; count++)
        expect(await failed(ping())).toMatchObject({ shortCircuited: true })
      expect(await probe).toMatchObject({ shortCircuited: false })
    }
    expect(redis.calls()).toBe(before)
    await proxy.set({ kind: 'none' })
    pass(MAX_PERIOD_MS)
    await patientPing()
    expect(breaker.state()).toBe('closed')
    const [steady, recovered] = [50, redis.calls()]
    await Promise.all(Array.from({ length: steady }, patientPing))
    expect(redis.calls() - recovered).toBe(steady)
  })

  test('of many requests at the end of a period one is sent, until it is answered [R32]', async () => {
    const { breaker, ping, pass } = isolate(5_000)
    await proxy.set({ kind: 'refuse' })
    for (let count = 0; count < DEFAULT_FAILURES; count++) await failed(ping())
    await proxy.set({ kind: 'none' })
    pass(FIRST_PERIOD_MS)
    const before = redis.calls()
    const answers = await Promise.allSettled(Array.from({ length: 200 }, ping))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(redis.calls() - before).toBe(1)
    expect(breaker.state()).toBe('closed')
  })

  test('background writes neither open it nor probe', async () => {
    const { breaker, passive, ping, pass } = isolate(5_000)
    await proxy.set({ kind: 'refuse' })
    for (let count = 0; count < 2 * DEFAULT_FAILURES; count++)
      await failed(passive.send([['PING']]))
    expect(breaker.state()).toBe('closed')
    for (let count = 0; count < DEFAULT_FAILURES; count++) await failed(ping())
    await proxy.set({ kind: 'none' })
    pass(MAX_PERIOD_MS)
    const before = redis.calls()
    expect(await failed(passive.send([['PING']]))).toMatchObject({ shortCircuited: true })
    expect(redis.calls()).toBe(before)
    await ping()
    await passive.send([['PING']])
  })
})

describe('not an outage:', () => {
  test('a Redis that needs 50 ms or more never opens the breaker [R03]', async () => {
    const { breaker, ping, outcomes } = isolate(5_000)
    await proxy.set({ kind: 'latency', ms: 50, jitterMs: 20 })
    for (let round = 0; round < 4; round++) await Promise.all(Array.from({ length: 40 }, ping))
    expect(breaker.state()).toBe('closed')
    expect(new Set(outcomes)).toEqual(new Set(['answered']))
  })

  test('errors of single commands in a valid reply never open it', async () => {
    const { breaker, rest } = isolate(5_000)
    await redis.direct.lpush('a-list', 'x')
    for (let count = 0; count < 2 * DEFAULT_FAILURES; count++) {
      const [reply] = await rest.send([['GET', 'a-list']])
      expect(reply?.error).toMatch(/WRONGTYPE/)
    }
    expect(breaker.state()).toBe('closed')
  })
})

describe('a call that must not be repeated', () => {
  test('is sent once, although other calls without an answer are sent twice', async () => {
    const { rest } = isolate(5_000)
    await proxy.set({ kind: 'reset', afterBytes: 0 })
    const before = redis.calls()
    await failed(rest.send([['INCR', 'twice']]))
    expect(redis.calls() - before).toBe(2)
    await failed(sentOnce(rest).send([['INCR', 'once']]))
    expect(await redis.direct.mget('twice', 'once')).toEqual(['2', '1'])
  })

  test('with a proof of possession is not sent again, because the proof would look used', async () => {
    const { admission } = isolate(5_000)
    const proof = { replayId: 'test', replayTtlSeconds: 60, nowMs: Date.now() }
    await proxy.set({ kind: 'reset', afterBytes: 0 })
    const request = { principal: principal(), address: ADDRESS, limits: [], proof }
    const before = redis.calls()
    expect(await failed(admission.admit(request as never))).toBeInstanceOf(Unavailable)
    expect(redis.calls() - before).toBe(1)
  })
})

describe.each([...FAULTS, ...RUBBISH])('with %s', (_, fault) => {
  test('refuses each caller that must be refused, and admits the rest after the fault [R01, R02, R03, R04, R05, R06]', async () => {
    const good = principal()
    const [revoked, revokedBefore] = [principal(), principal()]
    const spent = limitOf({ limit: 1 })
    const revocations = createRevocations(
      createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 }),
      Date.now,
    )
    await revocations.revokeToken({
      tokenIdHash: revoked.tokenIdHash ?? '',
      untilSeconds: nowSeconds() + 600,
    })
    await revocations.revokeBefore({
      kind: 'subject',
      issuer: revokedBefore.issuer,
      value: revokedBefore.subject,
      atSeconds: nowSeconds(),
      ttlSeconds: 600,
    })
    await redis.direct.set(
      await addressBanKey(DEFAULT_KEYS, BANNED_ADDRESS),
      nowSeconds() + 600,
      'EX',
      600,
    )
    const limits = [limitOf({ limit: 1_000 })]
    const callers = [
      { principal: revoked, address: ADDRESS, limits },
      { principal: revokedBefore, address: ADDRESS, limits },
      { principal: good, address: BANNED_ADDRESS, limits },
      { principal: good, address: ADDRESS, limits: [spent] },
    ]
    const arranging = isolate(5_000)
    await arranging.admission.admit({ principal: good, address: ADDRESS, limits: [spent] })

    const decided: (AdmissionVerdict | Unavailable)[] = []
    for (let round = 0; round < 3; round++) {
      // An isolate with an empty memory: every result comes from Redis.
      const { admission, breaker, pass, outcomes } = isolate()
      await proxy.set(fault)
      for (const caller of [...callers, ...callers]) {
        const verdict = await admission.admit(caller).catch((error: unknown) => error)
        if (verdict instanceof Error && !(verdict instanceof Unavailable)) throw verdict
        decided.push(verdict as AdmissionVerdict | Unavailable)
      }
      if (!outcomes.includes('answered')) {
        expect(breaker.state()).toBe('open')
        // Eight requests, five calls: after five failures none is sent.
        expect(outcomes).toHaveLength(DEFAULT_FAILURES)
      }
      await proxy.set({ kind: 'none' })
      // A probe may miss its deadline on a busy machine. Then the next one decides.
      await expect
        .poll(() => {
          pass(MAX_PERIOD_MS)
          return admission.admit({ principal: good, address: ADDRESS, limits }).catch(() => {})
        })
        .toMatchObject({ denial: undefined })
      expect(breaker.state()).toBe('closed')
    }
    const accepted = decided.filter(
      (verdict) => !(verdict instanceof Unavailable) && verdict.denial === undefined,
    )
    expect(accepted, NEVER).toEqual([])
    expect(decided).toHaveLength(24)
  })
})
