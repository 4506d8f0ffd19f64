/** Bad credentials in sequence, through `throttle`, `authenticate` and `admit`. */
import fc from 'fast-check'
import { Hono } from 'hono'
import { decodeJwt } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type AuthenticationFailures,
  createAuthenticationFailures,
  MIN_CHECKS_AT_ONCE,
  type RunningCheck,
} from '../../../src/access/abuse/authentication-failures.ts'
import { DEFAULT_FAILURES } from '../../../src/access/abuse/definition.ts'
import { createFailureCounter } from '../../../src/access/abuse/redis/authentication-failures.ts'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { TokenVerifier } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createDpopVerifier } from '../../../src/access/tokens/dpop.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { createAddressList } from '../../../src/http/address-list.ts'
import { admit } from '../../../src/middleware/admit.ts'
import { authenticate } from '../../../src/middleware/authenticate.ts'
import { clientAddress } from '../../../src/middleware/client-address.ts'
import { callerOf, type ObservedVariables } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import { throttle } from '../../../src/middleware/throttle.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import type { Mode } from '../../../src/validators/mode.ts'
import { sendTo } from '../../harness/gateway.ts'
import { usualOrLong } from '../../harness/long.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ath, createProver } from '../tokens/prover.ts'
import { createSigner, encode, goodClaims, ISSUER, issuerOf } from '../tokens/signer.ts'
import { GATEWAY, nowSeconds, recordOf, stored } from './callers.ts'

const MAX_FAILURE_WRITES_PER_SECOND = 100

const { limit, windowSeconds } = DEFAULT_FAILURES
const BAD = '203.0.113.7'
const GOOD = '198.51.100.1'
const AT_ONCE = 50
const FORGED = usualOrLong(2_000, 10_000)
/** Callers from other addresses, each beside a batch of forged tokens. */
const OTHERS = 10
const KEYS = 'pc:authentication-failures:*'

const signer = await createSigner('ES256')
const prover = await createProver()
const times = () => ({ iat: nowSeconds(), exp: nowSeconds() + 300, jti: crypto.randomUUID() })
const token = (claims: object = {}) =>
  signer.token({ ...times(), sub: crypto.randomUUID(), ...claims })
const [header = '', , signature = ''] = (await token()).split('.')
/** Well-formed in every part except the signature. */
const forged = () => `${header}.${encode({ ...goodClaims, ...times() })}.${signature}`

describe('throttle over Redis', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())
  afterEach(() => vi.restoreAllMocks())
  beforeEach(async () => {
    redis.setAnswering(true)
    // Loads the scripts into Redis, so that no test pays for it.
    const gateway = isolate()
    await gateway.sendToken(await token(), GOOD)
    await gateway.sendToken(crypto.randomUUID(), GOOD)
    await redis.direct.flushall()
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })

  interface IsolateOptions {
    readonly now?: () => number
    readonly mode?: Mode
    readonly exempt?: readonly string[]
    readonly maxAddresses?: number
  }

  /** Creates an app with the stages. Records who reached its handler. */
  function isolate({
    now = Date.now,
    maxAddresses = 1_000,
    mode = 'enforce',
    exempt = [],
  }: IsolateOptions = {}) {
    const reached: (string | undefined)[] = []
    const observed: (string[] | undefined)[] = []
    const verifier = createTokenVerifier({ issuers: [issuerOf([signer.publicJwk])] })
    const references = createReferences({ audience: GATEWAY })
    const proofs = createDpopVerifier({
      publicUrl: GATEWAY,
      nonceSecret: undefined,
      nonceRequired: false,
    })
    const store = createRedisAdmissionStore(rest())
    const admission = createAdmission({ store, references, now: Date.now })
    const failures = createAuthenticationFailures({
      limit,
      windowSeconds,
      maxAddresses,
      counter: createFailureCounter(rest()),
      isExempt: createAddressList(exempt),
      mode,
      now,
    })
    const app = new Hono<{ Variables: Partial<ObservedVariables> }>()
    app.onError(problemHandler())
    app.use(async (c, next) => {
      await next()
      observed.push(c.get('portcullis.observed'))
    })
    app.use(clientAddress(), throttle({ failures, verifier, references }))
    app.use(authenticate({ verifier, references, proofs, anonymous: true }), admit({ admission }))
    app.get('/', (c) => {
      reached.push(callerOf(c)?.subject)
      return c.text('ok')
    })

    const send = (headers: Record<string, string>) =>
      sendTo(app, new Request(`${GATEWAY}/`, { headers }))
    const sendToken = (credential: string, address: string, more: Record<string, string> = {}) =>
      send({ authorization: `Bearer ${credential}`, 'cf-connecting-ip': address, ...more })
    return { reached, observed, send, sendToken }
  }

  /** Sends as many bad tokens as an address may. */
  async function spend(gateway: ReturnType<typeof isolate>, address = BAD): Promise<void> {
    for (let sent = 0; sent < limit; sent++)
      expect((await gateway.sendToken(forged(), address)).status).toBe(401)
  }

  test(`of ${FORGED} forged tokens from one address only the first are verified, and no other address waits [S44, R18]`, async () => {
    const gateway = isolate()
    const verify = vi.spyOn(crypto.subtle, 'verify')
    const statuses: number[] = []
    let others = 0
    for (let sent = 0; sent < FORGED; sent += AT_ONCE) {
      const batch = Array.from({ length: AT_ONCE }, () => gateway.sendToken(forged(), BAD))
      if (sent % (FORGED / OTHERS) === 0) {
        expect((await gateway.sendToken(await token(), `198.51.100.${others}`)).status).toBe(200)
        others += 1
      }
      for (const response of await Promise.all(batch)) statuses.push(response.status)
    }
    const refused = statuses.filter((status) => status === 401).length
    expect(statuses.filter((status) => status === 429).length).toBe(FORGED - refused)
    expect(others).toBe(OTHERS)
    expect(verify).toHaveBeenCalledTimes(refused + OTHERS)
    expect(refused).toBeGreaterThanOrEqual(limit)
    expect(refused).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
    expect(gateway.reached.length).toBe(OTHERS)
  })

  test('exactly 20 sequential tokens are verified, and the next response has a Retry-After', async () => {
    const gateway = isolate()
    const verify = vi.spyOn(crypto.subtle, 'verify')
    await spend(gateway)
    const response = await gateway.sendToken(forged(), BAD)
    expect(response.status).toBe(429)
    const seconds = Number(response.headers.get('retry-after'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    expect(seconds).toBeLessThanOrEqual(windowSeconds)
    expect(await response.json()).toMatchObject({ code: 'rate_limited' })
    expect(verify).toHaveBeenCalledTimes(limit)
    expect(gateway.reached).toEqual([])
  })

  test('a cached caller is served from the same address, and a new caller must wait [S44]', async () => {
    const gateway = isolate()
    const { text } = await stored(createReferenceStore(rest()), recordOf({ subject: 'carol' }))
    const alice = await token({ sub: 'alice' })
    expect((await gateway.sendToken(alice, BAD)).status).toBe(200)
    expect((await gateway.sendToken(text, BAD)).status).toBe(200)
    await spend(gateway)
    const verify = vi.spyOn(crypto.subtle, 'verify')
    expect((await gateway.sendToken(alice, BAD)).status).toBe(200)
    expect((await gateway.sendToken(text, BAD)).status).toBe(200)
    expect((await gateway.send({ 'cf-connecting-ip': BAD })).status).toBe(200)
    expect((await gateway.sendToken(await token({ sub: 'bob' }), BAD)).status).toBe(429)
    for (const authorization of ['Basic YTpi', 'Bearer', 'Bearer a.b.c', ''])
      expect((await gateway.send({ authorization, 'cf-connecting-ip': BAD })).status).toBe(429)
    expect(verify).not.toHaveBeenCalled()
    expect(gateway.reached).toEqual(['alice', 'carol', 'alice', 'carol', undefined])
  })

  test('another isolate learns of the count with its first failure, and verifies no second token [S44]', async () => {
    await spend(isolate())
    const other = isolate()
    expect((await other.sendToken(forged(), BAD)).status).toBe(401)
    expect((await other.sendToken(forged(), BAD)).status).toBe(429)
    expect((await other.sendToken(forged(), GOOD)).status).toBe(401)
    expect(other.reached).toEqual([])
  })

  test('failures of exempt and unknown addresses are not counted [S44]', async () => {
    const gateway = isolate({ exempt: ['127.0.0.0/8', '203.0.113.0/24', '::1/128'] })
    for (const address of [BAD, '127.0.0.1', '::1', 'x']) {
      for (let sent = 0; sent <= limit; sent++)
        expect((await gateway.sendToken(forged(), address)).status, address).toBe(401)
      expect((await gateway.sendToken(await token(), address)).status, address).toBe(200)
    }
    expect(await redis.direct.keys(KEYS)).toEqual([])
    await spend(gateway, GOOD)
    expect((await gateway.sendToken(await token(), GOOD)).status).toBe(429)
    expect(gateway.reached.length).toBe(4)
  })

  test('a throttle in observe mode refuses nothing, and records what it would refuse [S66]', async () => {
    const gateway = isolate({ mode: 'observe' })
    const alice = await token({ sub: 'alice' })
    expect((await gateway.sendToken(alice, BAD)).status).toBe(200)
    await spend(gateway)
    expect(gateway.observed).toEqual(Array(limit + 1).fill(undefined))
    const recorded = ['rate_limited:authentication_failures']
    expect((await gateway.sendToken(forged(), BAD)).status).toBe(401)
    expect(gateway.observed.at(-1)).toEqual(recorded)
    expect((await gateway.sendToken(await token({ sub: 'bob' }), BAD)).status).toBe(200)
    expect(gateway.observed.at(-1)).toEqual(recorded)
    // Cached before, so the throttle would not refuse her, nor anyone from another address.
    expect((await gateway.sendToken(alice, BAD)).status).toBe(200)
    expect((await gateway.sendToken(forged(), GOOD)).status).toBe(401)
    expect(gateway.observed.slice(-2)).toEqual([undefined, undefined])
    expect(gateway.reached).toEqual(['alice', 'bob', 'alice'])
  })

  test('unknown references count too, and then cost no call to Redis', async () => {
    const gateway = isolate()
    for (let sent = 0; sent < limit; sent++)
      expect((await gateway.sendToken(crypto.randomUUID(), BAD)).status).toBe(401)
    const before = redis.calls()
    expect((await gateway.sendToken(crypto.randomUUID(), BAD)).status).toBe(429)
    expect((await gateway.sendToken(forged(), BAD)).status).toBe(429)
    expect(redis.calls()).toBe(before)
    expect(gateway.reached).toEqual([])
  })

  test('an accepted request makes no call for the throttle, a failure makes one, a refusal none', async () => {
    const gateway = isolate()
    const callsOf = async (send: () => Promise<Response>) => {
      const before = redis.calls()
      const { status } = await send()
      return [status, redis.calls() - before]
    }
    const alice = await token()
    expect(await callsOf(() => gateway.sendToken(alice, BAD))).toEqual([200, 1])
    expect(await callsOf(() => gateway.sendToken(forged(), BAD))).toEqual([401, 1])
    expect(await callsOf(() => gateway.sendToken(alice, BAD))).toEqual([200, 1])
    await spend(gateway, GOOD)
    expect(await callsOf(() => gateway.sendToken(forged(), GOOD))).toEqual([429, 0])
  })

  test('without Redis each isolate counts for itself, and no response is a 5xx [R01]', async () => {
    const gateway = isolate()
    redis.setAnswering(false)
    await spend(gateway)
    expect((await gateway.sendToken(forged(), BAD)).status).toBe(429)
    expect((await gateway.sendToken(forged(), GOOD)).status).toBe(401)
    expect(gateway.reached).toEqual([])
  })

  test.each(['LPUSH', 'SET'] as const)(
    'a malformed counter (%s) admits no request [R12]',
    async (by) => {
      await redis.direct.call(by, `pc:authentication-failures:${BAD}`, 'x')
      const gateway = isolate()
      await spend(gateway)
      expect((await gateway.sendToken(forged(), BAD)).status).toBe(429)
      expect(gateway.reached).toEqual([])
    },
  )

  test('a counter expires with its window, gets a lost TTL back, and is bounded [R18]', async () => {
    const gateway = isolate()
    await redis.direct.set(`pc:authentication-failures:${GOOD}`, '1')
    await gateway.sendToken(forged(), GOOD)
    await gateway.sendToken(forged(), BAD)
    await gateway.sendToken(forged(), '2001:db8:1:2:3:4:5:6')
    await gateway.sendToken(forged(), `${'9'.repeat(10_000)}:*`)
    const keys = await redis.direct.keys(KEYS)
    expect(keys.sort()).toEqual(
      [GOOD, BAD, '2001%3Adb8%3A1%3A2%3A%3A%2F64'].map((part) => KEYS.replace('*', part)).sort(),
    )
    for (const key of keys) {
      const ttl = await redis.direct.ttl(key)
      expect(ttl).toBeGreaterThan(0)
      expect(ttl).toBeLessThanOrEqual(windowSeconds)
    }
  })

  test('an address evicted from the memory is refused again after one lookup [R19]', async () => {
    const gateway = isolate({ maxAddresses: 10 })
    await spend(gateway)
    for (let host = 0; host < 10; host++) await gateway.sendToken(forged(), `198.51.100.${host}`)
    expect((await gateway.sendToken(forged(), BAD)).status).toBe(401)
    expect((await gateway.sendToken(forged(), BAD)).status).toBe(429)
    expect(gateway.reached).toEqual([])
  })

  test('a flood from many addresses costs 100 calls a second, and the isolate still counts each address', async () => {
    let nowMs = Date.now()
    const gateway = isolate({ now: () => nowMs })
    const before = redis.calls()
    const from = (host: number) => gateway.sendToken(forged(), `10.1.${host >> 8}.${host & 255}`)
    const addresses = Array.from({ length: 300 }, (_, host) => host)
    for (const response of await Promise.all(addresses.map(from))) expect(response.status).toBe(401)
    expect(redis.calls() - before).toBe(MAX_FAILURE_WRITES_PER_SECOND)
    for (let sent = 1; sent < limit; sent++) expect((await from(299)).status).toBe(401)
    expect((await from(299)).status).toBe(429)
    expect(redis.calls() - before).toBe(MAX_FAILURE_WRITES_PER_SECOND)
    nowMs += 1_000
    await from(1)
    expect(redis.calls() - before).toBe(MAX_FAILURE_WRITES_PER_SECOND + 1)
    expect(gateway.reached).toEqual([])
  })

  test('no address is refused forever: the window ends by the clock [S44]', async () => {
    let nowMs = Date.now()
    const gateway = isolate({ now: () => nowMs })
    await spend(gateway)
    // Redis counts by its own clock, which runs while this process waits for its turn.
    nowMs += (windowSeconds * 1000) / 2
    expect((await gateway.sendToken(await token(), BAD)).status).toBe(429)
    nowMs += (windowSeconds * 1000) / 2
    await redis.direct.del(`pc:authentication-failures:${BAD}`)
    expect((await gateway.sendToken(await token(), BAD)).status).toBe(200)
    await spend(gateway)
    expect((await gateway.sendToken(await token(), BAD)).status).toBe(429)
  })

  test('bad proofs count; revoked and missing tokens do not', async () => {
    const gateway = isolate()
    const revoked = await token({ jti: 'revoked', sub: 'alice' })
    expect((await gateway.sendToken(revoked, GOOD)).status).toBe(200)
    await createRevocations(rest(), Date.now).revokeToken({
      tokenIdHash: await tokenIdHash(ISSUER, 'revoked'),
      untilSeconds: nowSeconds() + 300,
    })
    for (let sent = 0; sent <= limit; sent++) {
      expect((await gateway.sendToken(revoked, BAD)).status).toBe(401)
      expect(
        (await gateway.send({ authorization: 'Basic YTpi', 'cf-connecting-ip': BAD })).status,
      ).toBe(401)
    }
    expect((await gateway.sendToken(await token(), BAD)).status).toBe(200)

    const bound = await token({ cnf: { jkt: prover.thumbprint } })
    const DPoP = await prover.proof({ iat: nowSeconds() - 3_600, ath: ath(bound) })
    const headers = { authorization: `DPoP ${bound}`, 'cf-connecting-ip': BAD, DPoP }
    for (let sent = 0; sent < limit; sent++) expect((await gateway.send(headers)).status).toBe(401)
    // The token was authentic: only its subject is throttled, at this address.
    const { sub } = decodeJwt(bound)
    expect((await gateway.sendToken(await token({ sub }), BAD)).status).toBe(429)
    expect((await gateway.sendToken(await token({ sub }), GOOD)).status).toBe(200)
    expect((await gateway.sendToken(await token(), BAD)).status).toBe(200)
    expect(gateway.reached.length).toBe(4)
  })
  const BURST = 300
  const burstOf = <Item>(make: () => Item): Item[] => Array.from({ length: BURST }, make)
  const countOf = (responses: readonly Response[], status: number) =>
    responses.filter((response) => response.status === status).length

  test('300 concurrent forged tokens from a new address cost no more than sequential ones [S44]', async () => {
    const gateway = isolate()
    const verify = vi.spyOn(crypto.subtle, 'verify')
    const responses = await Promise.all(burstOf(() => gateway.sendToken(forged(), BAD)))
    const checked = countOf(responses, 401)
    expect(verify).toHaveBeenCalledTimes(checked)
    expect(checked).toBeGreaterThanOrEqual(limit)
    expect(checked).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
    expect(countOf(responses, 429)).toBe(BURST - checked)
    expect(gateway.reached).toEqual([])
  })

  test('one forged token sent 300 times does not either [S44]', async () => {
    const [gateway, text] = [isolate(), forged()]
    const verify = vi.spyOn(crypto.subtle, 'verify')
    const responses = await Promise.all(burstOf(() => gateway.sendToken(text, BAD)))
    expect(verify.mock.calls.length).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
    expect(countOf(responses, 401) + countOf(responses, 429)).toBe(BURST)
    expect(gateway.reached).toEqual([])
  })

  test('300 concurrent valid tokens from one address are all served, also beside some failures', async () => {
    const gateway = isolate()
    for (let sent = 0; sent < limit - 1; sent++)
      expect((await gateway.sendToken(forged(), GOOD)).status).toBe(401)
    for (const address of [BAD, GOOD]) {
      const tokens = await Promise.all(burstOf(() => token()))
      const verify = vi.spyOn(crypto.subtle, 'verify')
      const responses = await Promise.all(tokens.map((text) => gateway.sendToken(text, address)))
      expect(countOf(responses, 200)).toBe(BURST)
      expect(verify).toHaveBeenCalledTimes(BURST)
      verify.mockRestore()
    }
    expect(gateway.reached).toHaveLength(2 * BURST)
  })

  test('one valid token sent 300 times is served each time, and verified at most 20 times', async () => {
    const [gateway, text] = [isolate(), await token()]
    const verify = vi.spyOn(crypto.subtle, 'verify')
    const responses = await Promise.all(burstOf(() => gateway.sendToken(text, BAD)))
    expect(countOf(responses, 200)).toBe(BURST)
    expect(verify.mock.calls.length).toBeLessThanOrEqual(limit)
  })

  test('of 300 forged and 300 valid concurrent tokens few forged ones are verified, and none is admitted [S44]', async () => {
    const gateway = isolate()
    const good = await Promise.all(burstOf(() => token({ sub: 'alice' })))
    const responses = await Promise.all(
      good.flatMap((text) => [gateway.sendToken(text, BAD), gateway.sendToken(forged(), BAD)]),
    )
    const ofGood = responses.filter((_, index) => index % 2 === 0)
    const ofForged = responses.filter((_, index) => index % 2 === 1)
    const checked = countOf(ofForged, 401)
    expect(checked).toBeGreaterThanOrEqual(limit)
    expect(checked).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
    expect(countOf(ofForged, 429)).toBe(BURST - checked)
    // The address has used up its failures, so a new token must wait, for every subject.
    expect(countOf(ofGood, 200) + countOf(ofGood, 429)).toBe(BURST)
    expect(gateway.reached).toEqual(Array(countOf(ofGood, 200)).fill('alice'))
    const responsesElsewhere = await Promise.all(good.map((text) => gateway.sendToken(text, GOOD)))
    expect(countOf(responsesElsewhere, 200)).toBe(BURST)
  })

  test('of 300 unknown references at most 23 are looked up [S44, R18]', async () => {
    const gateway = isolate()
    const before = redis.calls()
    const responses = await Promise.all(burstOf(() => gateway.sendToken(crypto.randomUUID(), BAD)))
    const checked = countOf(responses, 401)
    expect(checked).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
    expect(countOf(responses, 429)).toBe(BURST - checked)
    // One call for the lookup and one for the count.
    expect(redis.calls() - before).toBeLessThanOrEqual(2 * checked)
    expect(gateway.reached).toEqual([])
  })

  test('300 valid references that the isolate has not cached are all served', async () => {
    const gateway = isolate()
    const store = createReferenceStore(rest())
    const texts = await Promise.all(burstOf(async () => (await stored(store, recordOf())).text))
    const responses = await Promise.all(texts.map((text) => gateway.sendToken(text, BAD)))
    expect(countOf(responses, 200)).toBe(BURST)
    expect(gateway.reached).toHaveLength(BURST)
  })

  test('a throttle in observe mode verifies a whole burst, and records what exceeds the limit [S66]', async () => {
    const gateway = isolate({ mode: 'observe' })
    const responses = await Promise.all(burstOf(() => gateway.sendToken(forged(), BAD)))
    expect(countOf(responses, 401)).toBe(BURST)
    const recorded = gateway.observed.filter((reasons) => reasons !== undefined)
    expect(recorded).toHaveLength(BURST - limit)
  })
})

describe('concurrent checks', () => {
  let nowMs = 0
  const counter = { count: async () => ({ count: 1, resetSeconds: windowSeconds }) }
  const failuresOf = (maxAddresses = 100) =>
    createAuthenticationFailures({ limit, windowSeconds, counter, maxAddresses, now: () => nowMs })
  const behind = () => undefined
  const roomOf = (failures: AuthenticationFailures) => {
    let room = 0
    while (failures.begin(BAD) !== undefined) room += 1
    return room
  }

  test('are limited to the remaining failures, and to four at least', () => {
    for (let failed = 0; failed < limit; failed++) {
      const failures = failuresOf()
      for (let count = 0; count < failed; count++) failures.record(BAD, behind)
      expect(roomOf(failures)).toBe(Math.max(limit - failed, MIN_CHECKS_AT_ONCE))
    }
  })

  test('never let more than 23 of an address fail, in any order of ends and failures', () => {
    const property = fc.property(fc.array(fc.nat(1_000), { minLength: 300 }), (choices) => {
      const failures = failuresOf()
      const running: RunningCheck[] = []
      let [begun, failed] = [0, 0]
      for (const choice of choices) {
        const isExhausted = failures.waitSeconds(BAD) !== undefined
        const check = choice % 3 === 0 || isExhausted ? undefined : failures.begin(BAD)
        if (check !== undefined) {
          begun += 1
          running.push(check)
          continue
        }
        const [ended] = running.splice(choice % Math.max(running.length, 1), 1)
        if (ended === undefined) continue
        failures.record(BAD, behind)
        ended.end()
        failed += 1
      }
      expect(begun).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
      expect(failed).toBeGreaterThanOrEqual(Math.min(limit, begun - running.length))
    })
    fc.assert(property)
  })

  test('release an abandoned place after sixteen seconds', () => {
    const failures = failuresOf()
    expect(roomOf(failures)).toBe(limit)
    nowMs += 13_999
    expect(roomOf(failures)).toBe(0)
    nowMs += 2_001
    expect(roomOf(failures)).toBe(limit)
  })

  test('keep only addresses with checks in progress, within the bound of the memory [R19]', () => {
    const failures = failuresOf(10)
    const first = failures.begin(BAD)
    for (let host = 0; host < 10; host++) failures.begin(`198.51.100.${host}`)
    // Evicted: its end must not release a place of a newer check.
    expect(roomOf(failures)).toBe(limit)
    first?.end()
    expect(roomOf(failures)).toBe(0)
  })

  test('wait at most ten seconds for a place: then 503, and the token is not verified [R19]', async () => {
    vi.useFakeTimers()
    try {
      let verified = 0
      const verifier: TokenVerifier = {
        recall: () => undefined,
        verify() {
          verified += 1
          return new Promise<never>(() => {})
        },
      }
      const app = new Hono()
      app.onError(problemHandler())
      const failures = createAuthenticationFailures({
        limit,
        windowSeconds,
        counter,
        now: Date.now,
      })
      app.use(clientAddress(), throttle({ failures, verifier }), authenticate({ verifier }))
      const headers = { authorization: `Bearer ${forged()}`, 'cf-connecting-ip': BAD }
      for (let sent = 0; sent < limit; sent++) void app.request('/', { headers })
      await vi.advanceTimersByTimeAsync(1)
      const late = app.request('/', { headers })
      await vi.advanceTimersByTimeAsync(10_500)
      const response = await late
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('1')
      expect(verified).toBe(limit)
    } finally {
      vi.useRealTimers()
    }
  })
})
