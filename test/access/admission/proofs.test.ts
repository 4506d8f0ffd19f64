/** Tokens bound to a key, through `authenticate` and `admit` (RFC 9449 section 7). */
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createDpopVerifier } from '../../../src/access/tokens/dpop.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { Denied } from '../../../src/errors.ts'
import { admit } from '../../../src/middleware/admit.ts'
import { type AuthenticateOptions, authenticate } from '../../../src/middleware/authenticate.ts'
import { callerOf, type GatewayVariables } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import type { PolicyLimit } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ath, createProver, GATEWAY } from '../tokens/prover.ts'
import { createSigner, issuerOf } from '../tokens/signer.ts'
import { ADDRESS, nowSeconds, recordOf, stored, takenOf } from './callers.ts'

const URL_OF_ORDERS = `${GATEWAY}/orders?limit=1`
const signer = await createSigner('ES256')
const [prover, thief] = [await createProver(), await createProver('EdDSA')]
const BOUND = { cnf: { jkt: prover.thumbprint } }

const jwt = (claims: object = {}) =>
  signer.token({
    iat: nowSeconds(),
    exp: nowSeconds() + 300,
    jti: crypto.randomUUID(),
    sub: crypto.randomUUID(),
    ...claims,
  })
const proofFor = (token: string, claims: object = {}, by = prover) =>
  by.proof({ jti: crypto.randomUUID(), iat: nowSeconds(), ath: ath(token), ...claims })

const limit: PolicyLimit = {
  name: 'standard',
  limit: 5,
  windowSeconds: 86_400,
  by: 'subject',
  onUnavailable: 'deny',
}

describe('bound tokens over Redis', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    // Loads the scripts into Redis, so that no test pays for it.
    await redis.direct.flushall()
    const { send } = isolate()
    const { text } = await keep()
    for (const _ of ['cold', 'warm']) await send(`DPoP ${text}`, await proofFor(text))
    await redis.direct.flushall()
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const keep = (claims: object = { confirmation: prover.thumbprint }) =>
    stored(createReferenceStore(rest()), recordOf(claims))

  /**
   * Creates an app with the two stages. Records the requests that reached its handler and the
   * reasons of refusals.
   */
  function isolate(options: Partial<AuthenticateOptions> = {}, limits = [limit]) {
    const reached: (string | undefined)[] = []
    const reasons: string[] = []
    const references = createReferences({ audience: GATEWAY })
    const store = createRedisAdmissionStore(rest())
    const admission = createAdmission({ store, references, now: Date.now })
    const proofs = createDpopVerifier({
      publicUrl: GATEWAY,
      nonceSecret: 'not the keys of a gateway, but as long as one',
      nonceRequired: options.sendNonces ?? false,
    })
    const verifier = createTokenVerifier({ issuers: [issuerOf([signer.publicJwk])] })
    const app = new Hono<{ Variables: GatewayVariables }>()
    app.onError(problemHandler())
    app.use(async (c, next) => {
      c.set('portcullis.clientAddress', ADDRESS)
      await next()
      if (c.error instanceof Denied) {
        const { denial } = c.error
        reasons.push('check' in denial ? `${denial.code}:${denial.check}` : denial.code)
      }
    })
    app.all(
      '/orders',
      authenticate({ verifier, references, proofs, ...options }),
      admit({ admission, limits }),
      (c) => {
        reached.push(callerOf(c)?.confirmation)
        return c.text('ok')
      },
    )
    const send = async (authorization?: string, ...dpop: string[]) => {
      const headers = new Headers(authorization === undefined ? {} : { authorization })
      for (const proof of dpop) headers.append('DPoP', proof)
      return app.request(URL_OF_ORDERS, { headers })
    }
    return { send, reached, reasons }
  }

  test('a bound JWT with its proof costs one call, and so does a bound opaque token, cached or not', async () => {
    const { send, reached } = isolate({}, [limit, { ...limit, name: 'expensive', by: 'client' }])
    const token = await jwt(BOUND)
    const { text } = await keep()
    // The scripts are loaded before the first bound JWT of an isolate.
    for (const credential of [token, token, text, text]) {
      const before = redis.calls()
      expect((await send(`DPoP ${credential}`, await proofFor(credential))).status).toBe(200)
      expect(redis.calls() - before).toBe(1)
    }
    expect(reached).toEqual(Array(4).fill(prover.thumbprint))
  })

  test.each(['jwt', 'cold', 'warm'] as const)(
    'a proof is valid once across all gateways: the next use is 401 and counts nothing (%s)',
    async (kind) => {
      const token = kind === 'jwt' ? await jwt(BOUND) : (await keep()).text
      const [here, there] = [isolate(), isolate()]
      if (kind === 'warm')
        for (const { send } of [here, there]) await send(`DPoP ${token}`, await proofFor(token))
      const proof = await proofFor(token)
      const first = await here.send(`DPoP ${token}`, proof)
      expect(first.status).toBe(200)
      for (const gateway of [there, here, there]) {
        const replayed = await gateway.send(`DPoP ${token}`, proof)
        expect(replayed.status).toBe(401)
        expect(replayed.headers.get('www-authenticate')).toMatch(
          /^DPoP .*error="invalid_dpop_proof"/,
        )
        expect(gateway.reasons.at(-1)).toBe('invalid_dpop_proof:replay')
      }
      const warmUps = kind === 'warm' ? 1 : 0
      expect(here.reached.length).toBe(1 + warmUps)
      expect(there.reached.length).toBe(warmUps)
      // This isolate has cached the proof and makes no call.
      const before = redis.calls()
      expect((await here.send(`DPoP ${token}`, proof)).status).toBe(401)
      expect(redis.calls() - before).toBe(0)
      const [key = ''] = await redis.direct.keys('pc:dpop:*')
      expect(await redis.direct.ttl(key)).toBeGreaterThan(60)
    },
  )

  test('20 parallel uses of one proof over two isolates: exactly one is admitted', async () => {
    const { text } = await keep()
    const gateways = [isolate(), isolate()] as const
    const proof = await proofFor(text)
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        gateways[index % 2 ? 0 : 1].send(`DPoP ${text}`, proof),
      ),
    )
    expect(gateways[0].reached.length + gateways[1].reached.length).toBe(1)
    // For an uncached reference, the replays have spent nothing.
    const [key = ''] = await redis.direct.keys('pc:limit:*')
    expect(takenOf(await redis.direct.get(key))).toBe(1)
  })

  test.each(['jwt', 'cold', 'warm'] as const)(
    'a bound token without its own proof is refused in every variant, and spends nothing (%s)',
    async (kind) => {
      const token = kind === 'jwt' ? await jwt(BOUND) : (await keep()).text
      const { send, reached, reasons } = isolate()
      if (kind === 'warm') await send(`DPoP ${token}`, await proofFor(token))
      for (const key of await redis.direct.keys('pc:limit:*')) await redis.direct.del(key)
      reached.length = 0
      const other = await jwt()
      const attempts: [string, string[], string][] = [
        [`Bearer ${token}`, [], 'token_rejected:dpop_binding'],
        [`Bearer ${token}`, [await proofFor(token)], 'token_rejected:dpop_binding'],
        [`DPoP ${token}`, [], 'invalid_dpop_proof:missing'],
        [`DPoP ${token}`, [await proofFor(token, {}, thief)], 'token_rejected:dpop_binding'],
        [`DPoP ${token}`, [await proofFor(other)], 'invalid_dpop_proof:ath'],
        [`DPoP ${token}`, [await proofFor(token, { ath: undefined })], 'invalid_dpop_proof:ath'],
        [`DPoP ${token}`, [await proofFor(token, { htm: 'POST' })], 'invalid_dpop_proof:htm'],
        [
          `DPoP ${token}`,
          [await proofFor(token, { htu: `${GATEWAY}/x` })],
          'invalid_dpop_proof:htu',
        ],
        [
          `DPoP ${token}`,
          [await proofFor(token), await proofFor(token)],
          'invalid_dpop_proof:multiple',
        ],
      ]
      for (const [authorization, proofs, reason] of attempts) {
        expect((await send(authorization, ...proofs)).status, reason).toBe(401)
        expect(reasons.at(-1)).toBe(reason)
      }
      expect(reached).toEqual([])
      expect(await redis.direct.keys('pc:limit:*')).toEqual([])
    },
  )

  test('an unbound token is refused with the scheme DPoP, even with a valid proof', async () => {
    const { text } = await keep({})
    const { send, reached, reasons } = isolate()
    for (const token of [await jwt(), text, text]) {
      expect((await send(`DPoP ${token}`, await proofFor(token))).status).toBe(401)
      expect(reasons.at(-1)).toBe('token_rejected:dpop_binding')
    }
    expect(reached).toEqual([])
    expect((await send(`Bearer ${text}`)).status).toBe(200)
    // Also after the isolate has cached the token.
    expect((await send(`DPoP ${text}`, await proofFor(text))).status).toBe(401)
  })

  test('a route that requires DPoP refuses every bearer token, bound or not, without a call', async () => {
    const { send, reached, reasons } = isolate({ dpop: 'required' })
    const before = redis.calls()
    for (const token of [await jwt(), await jwt(BOUND), crypto.randomUUID()]) {
      const response = await send(`Bearer ${token}`)
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toMatch(/^DPoP /)
      expect(reasons.at(-1)).toBe('invalid_dpop_proof:required')
    }
    // S29: a request without credentials is challenged without an error attribute, with the usable
    // scheme.
    const challenge = (await send()).headers.get('www-authenticate')
    expect(challenge).toMatch(/^DPoP realm="portcullis", algs="ES256 /)
    expect(challenge).not.toContain('error=')
    expect(redis.calls()).toBe(before)
    expect(reached).toEqual([])
    const token = await jwt(BOUND)
    expect((await send(`DPoP ${token}`, await proofFor(token))).status).toBe(200)
  })

  test('a required nonce is demanded, sent with every response, and accepted', async () => {
    const { send, reached } = isolate({ sendNonces: true })
    const token = await jwt(BOUND)
    const refused = await send(`DPoP ${token}`, await proofFor(token))
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toContain('error="use_dpop_nonce"')
    const nonce = refused.headers.get('dpop-nonce') ?? ''
    const proof = await proofFor(token, { nonce })
    const response = await send(`DPoP ${token}`, proof)
    expect(response.status).toBe(200)
    expect(response.headers.get('dpop-nonce')).toMatch(/^\S+$/)
    // Also on a refusal by a later stage.
    const replayed = await send(`DPoP ${token}`, proof)
    expect(replayed.status).toBe(401)
    expect(replayed.headers.get('dpop-nonce')).toMatch(/^\S+$/)
    expect(reached.length).toBe(1)
    expect((await send(`Bearer ${await jwt()}`)).headers.get('dpop-nonce')).toBeNull()
  })

  test('without required nonces, responses have no nonce', async () => {
    const token = await jwt(BOUND)
    const response = await isolate().send(`DPoP ${token}`, await proofFor(token))
    expect(response.status).toBe(200)
    expect(response.headers.get('dpop-nonce')).toBeNull()
  })

  test('without a proof verifier, bound tokens are refused and DPoP credentials are not read', async () => {
    const { send, reached, reasons } = isolate({ proofs: undefined })
    const token = await jwt(BOUND)
    expect((await send(`Bearer ${token}`)).status).toBe(401)
    expect((await send(`DPoP ${token}`, await proofFor(token))).status).toBe(401)
    expect((await send(`Bearer ${(await keep()).text}`)).status).toBe(401)
    expect(reasons).toEqual([
      'token_rejected:dpop_binding',
      'missing_token',
      'token_rejected:dpop_binding',
    ])
    expect(reached).toEqual([])
  })
})

test('options that need a proof verifier are refused when the app is built', () => {
  const verifier = createTokenVerifier({ issuers: [] })
  expect(() => authenticate({ verifier, dpop: 'required' })).toThrow(TypeError)
  expect(() => authenticate({ verifier, sendNonces: true })).toThrow(TypeError)
})
