/**
 * Apps that use the middlewares without `app.onError(problemHandler())`. Hono's own error handler
 * then answers with the response that the error carries.
 */
import { Hono, type MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { createAuthenticationFailures } from '../../src/access/abuse/authentication-failures.ts'
import { addressBanKey } from '../../src/access/abuse/ban.ts'
import { DEFAULT_BANS } from '../../src/access/abuse/definition.ts'
import { createFailureCounter } from '../../src/access/abuse/redis/authentication-failures.ts'
import { createViolationCounter } from '../../src/access/abuse/redis/violations.ts'
import { createViolations } from '../../src/access/abuse/violations.ts'
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { createAuthorizer } from '../../src/access/permissions.ts'
import type { Principal } from '../../src/access/principal.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { DPOP_ALGORITHMS } from '../../src/crypto/dpop-algorithms.ts'
import { Denied, Unavailable } from '../../src/errors.ts'
import { admit } from '../../src/middleware/admit.ts'
import { authenticate } from '../../src/middleware/authenticate.ts'
import { authorize } from '../../src/middleware/authorize.ts'
import { banOffenders } from '../../src/middleware/ban-offenders.ts'
import { canonicalPath } from '../../src/middleware/canonical-path.ts'
import { clientAddress } from '../../src/middleware/client-address.ts'
import { inspect } from '../../src/middleware/inspect.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { readmit } from '../../src/middleware/readmit.ts'
import { requestId } from '../../src/middleware/request-id.ts'
import { sanitizeHeaders } from '../../src/middleware/sanitize-headers.ts'
import { shedLoad } from '../../src/middleware/shed-load.ts'
import { throttle } from '../../src/middleware/throttle.ts'
import { validate } from '../../src/middleware/validate.ts'
import { createOrigin } from '../../src/origin/origin.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { proxy } from '../../src/routes/proxy.ts'
import { ADDRESS, nowSeconds, principal } from '../access/admission/callers.ts'
import { ath, createProver, GATEWAY, verifierOf } from '../access/tokens/prover.ts'
import { createSigner, issuerOf, NOW_MS } from '../access/tokens/signer.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

const MAX_HEADERS = 500

/** Sends a request through the stages to a handler, without an error handler of ours. */
async function responseOf(
  stages: readonly MiddlewareHandler[],
  { path = '/notes/1', ...init }: RequestInit & { readonly path?: string } = {},
) {
  let isReached = false
  const app = new Hono()
  for (const stage of stages) app.use(stage)
  app.all('*', (c) => {
    isReached = true
    return c.text('reached')
  })
  const response = await app.request(`${GATEWAY}${path}`, init)
  return { response, isReached: () => isReached }
}

interface Expected {
  readonly status: number
  readonly code: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly errors?: unknown
  readonly limit?: string
}

async function expectProblem(
  response: Response,
  { status, code, headers = {}, errors, limit }: Expected,
) {
  expect(response.status).toBe(status)
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  })
  expect(await response.json()).toEqual({
    type: `urn:portcullis:problem:${code}`,
    title: expect.stringMatching(/./),
    detail: expect.stringMatching(/./),
    status,
    code,
    ...(errors !== undefined && { errors }),
    ...(limit !== undefined && { limit }),
  })
}

/** Expects that the stages refuse the request, and that the handler does not run. */
async function expectRefusal(
  stages: readonly MiddlewareHandler[],
  init: Parameters<typeof responseOf>[1],
  expected: Expected,
) {
  const { response, isReached } = await responseOf(stages, init)
  await expectProblem(response, expected)
  expect(isReached()).toBe(false)
}

const signer = await createSigner('ES256')
const prover = await createProver()
const verifier = createTokenVerifier({
  issuers: [issuerOf([signer.publicJwk])],
  now: () => NOW_MS,
})
const token = await signer.token()
const bearer = { authorization: `Bearer ${token}` }
const forged = { authorization: `Bearer ${token.slice(0, -4)}AAAA` }
const json = { 'content-type': 'application/json' }
const post = (body: string, headers: Record<string, string> = json) => ({
  method: 'POST',
  body,
  headers,
})

/** Sets the variables that a stage reads, as the stages before it would. */
const given =
  (variables: Record<string, unknown>): MiddlewareHandler =>
  async (c, next) => {
    for (const [name, value] of Object.entries(variables)) c.set(name, value)
    await next()
  }
const by = (caller: Principal | null) =>
  given({ 'portcullis.principal': caller, 'portcullis.clientAddress': ADDRESS })

const DPOP = `algs="${DPOP_ALGORITHMS.join(' ')}"`

describe("with Hono's own error handler, and without the handler behind the stage,", () => {
  test('authenticate answers 401 with a challenge', async () => {
    const stages = [authenticate({ verifier })]
    await expectRefusal(
      stages,
      {},
      {
        status: 401,
        code: 'missing_token',
        headers: { 'www-authenticate': 'Bearer realm="portcullis"' },
      },
    )
    await expectRefusal(
      stages,
      { headers: forged },
      {
        status: 401,
        code: 'invalid_token',
        headers: { 'www-authenticate': 'Bearer realm="portcullis", error="invalid_token"' },
      },
    )
  })

  test('authenticate answers 401 with the algorithms of proofs, and with a nonce', async () => {
    const nonceSecret = 'a secret of several gateways'
    const proofs = verifierOf({ nonceSecret, nonceRequired: true })
    const stages = [authenticate({ verifier, proofs, dpop: 'required' })]
    await expectRefusal(
      stages,
      {},
      {
        status: 401,
        code: 'missing_token',
        headers: { 'www-authenticate': `DPoP realm="portcullis", ${DPOP}` },
      },
    )
    await expectRefusal(
      stages,
      { headers: bearer },
      {
        status: 401,
        code: 'invalid_dpop_proof',
        headers: {
          'www-authenticate': `DPoP realm="portcullis", error="invalid_dpop_proof", ${DPOP}`,
        },
      },
    )
    const proof = await prover.proof({ htu: `${GATEWAY}/notes/1`, ath: ath(token) })
    const headers = { authorization: `DPoP ${token}`, dpop: proof }
    await expectRefusal(
      stages,
      { headers },
      {
        status: 401,
        code: 'use_dpop_nonce',
        headers: {
          'www-authenticate': `DPoP realm="portcullis", error="use_dpop_nonce", ${DPOP}`,
          'dpop-nonce': expect.stringMatching(/^\w+\.[\w-]{43}$/),
        },
      },
    )
  })

  test('authorize answers 403 with the missing permission, and 401 to an anonymous caller', async () => {
    const authorizer = createAuthorizer(new Map([['reader', ['notes:read']]]))
    const stage = authorize({ authorizer, permission: 'notes:write' })
    await expectRefusal(
      [by(principal({ roles: ['reader'] })), stage],
      {},
      {
        status: 403,
        code: 'insufficient_permission',
        headers: {
          'www-authenticate':
            'Bearer realm="portcullis", error="insufficient_scope", scope="notes:write"',
        },
      },
    )
    await expectRefusal([by(null), stage], {}, { status: 401, code: 'missing_token' })
  })

  test('canonicalPath and sanitizeHeaders answer 400', async () => {
    const path = '/notes/%2fadmin'
    await expectRefusal([canonicalPath()], { path }, { status: 400, code: 'ambiguous_path' })
    const headers = Object.fromEntries(
      Array.from({ length: MAX_HEADERS + 1 }, (_, index) => [`x-${index}`, '']),
    )
    const expected = { status: 400, code: 'malformed_request' }
    await expectRefusal([sanitizeHeaders()], { headers }, expected)
  })

  test('limitBody answers 413, also if the handler reads too much', async () => {
    const expected = { status: 413, code: 'payload_too_large' }
    const headers = { 'content-length': '5' }
    await expectRefusal([limitBody({ maxBytes: 4 })], post('12345', headers), expected)
    const app = new Hono()
    app.post('/', limitBody({ maxBytes: 4 }), async (c) =>
      c.text(await new Response(c.get('portcullis.body') as ReadableStream).text()),
    )
    await expectProblem(await app.request('/', post('12345')), expected)
  })

  test('validate answers 422 with the findings, and 415 with the media type', async () => {
    const stages = [limitBody({ maxBytes: 64 }), validate({ body: z.strictObject({ a: z.int() }) })]
    await expectRefusal(stages, post('{"a":"b"}'), {
      status: 422,
      code: 'invalid_input',
      errors: [{ in: 'body', path: '/a', message: expect.any(String) }],
    })
    await expectRefusal(stages, post('a', { 'content-type': 'text/plain' }), {
      status: 415,
      code: 'unsupported_media_type',
      headers: { accept: 'application/json' },
    })
  })

  test('inspect answers 400, and 403 for a call that the definition does not name', async () => {
    const before = [by(principal()), limitBody({ maxBytes: 1_024 })]
    const malformed = { status: 400, code: 'malformed_request' }
    await expectRefusal([...before, inspect({})], post('{"a":1,"a":2}'), malformed)
    const guard = inspect({ jsonRpc: { methods: { list: {} } } })
    const call = post('{"jsonrpc":"2.0","id":1,"method":"drop"}')
    const expected = { status: 403, code: 'insufficient_permission' }
    await expectRefusal([...before, guard], call, expected)
  })

  test('shedLoad answers 503 with Retry-After, as often as it refuses', async () => {
    const { promise: end, resolve } = Promise.withResolvers<void>()
    let reached = 0
    const app = new Hono()
    app.get('/', shedLoad({ maxConcurrentRequests: 1 }), async (c) => {
      reached += 1
      await end
      return c.text('late')
    })
    const first = app.request('/')
    for (let sent = 0; sent < 2; sent++)
      await expectProblem(await app.request('/'), {
        status: 503,
        code: 'overloaded',
        headers: { 'retry-after': '1' },
      })
    resolve()
    expect((await first).status).toBe(200)
    expect(reached).toBe(1)
  })

  test('proxy answers 502 if the origin cannot be reached', async () => {
    const app = new Hono()
    app.use(requestId(), sanitizeHeaders(), by(null), given({ 'portcullis.body': null }))
    app.all('*', proxy({ origin: createOrigin({ url: 'http://127.0.0.1:1' }) }))
    await expectProblem(await app.request('/'), { status: 502, code: 'origin_unreachable' })
  })

  test('a handler that refuses answers 405 with Allow, and HEAD gets no body', async () => {
    const app = new Hono()
    app.all('/', () => {
      throw new Denied({ code: 'method_not_allowed', allow: ['GET', 'POST'] })
    })
    const expected = {
      status: 405,
      code: 'method_not_allowed',
      headers: { allow: 'GET, POST' },
    }
    await expectProblem(await app.request('/', { method: 'DELETE' }), expected)
    const head = await app.request('/', { method: 'HEAD' })
    expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET, POST'])
    expect(await head.text()).toBe('')
  })
})

describe("with Hono's own error handler, over Redis,", () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    redis.setAnswering(true)
    await redis.direct.flushall()
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })
  const admission = () =>
    createAdmission({ store: createRedisAdmissionStore(rest()), now: Date.now })
  const retryAfter = { 'retry-after': expect.stringMatching(/^[1-9]\d*$/) }
  const limitedBy = { status: 429, code: 'rate_limited', headers: retryAfter }

  test('admit and readmit answer 401 to a revoked token', async () => {
    const caller = principal()
    await createRevocations(rest(), Date.now).revokeToken({
      tokenIdHash: caller.tokenIdHash ?? '',
      untilSeconds: caller.expiresAtSeconds,
    })
    const expected = {
      status: 401,
      code: 'invalid_token',
      headers: { 'www-authenticate': 'Bearer realm="portcullis", error="invalid_token"' },
    }
    await expectRefusal([by(caller), admit({ admission: admission() })], {}, expected)
    const delayed = given({ 'portcullis.heldUpSinceMs': Date.now() })
    await expectRefusal([by(caller), delayed, readmit({ admission: admission() })], {}, expected)
  })

  test('admit answers 403 to a banned caller, and 429 above a limit, with Retry-After', async () => {
    const limits = [
      {
        name: 'standard',
        limit: 1,
        windowSeconds: 86_400,
        by: 'address' as const,
        onUnavailable: 'deny' as const,
      },
    ]
    const stages = [by(principal()), admit({ admission: admission(), limits })]
    expect((await responseOf(stages)).isReached()).toBe(true)
    const limited = { ...limitedBy, limit: 'standard' }
    await expectRefusal(stages, {}, limited)
    await redis.direct.set(await addressBanKey(DEFAULT_KEYS, ADDRESS), String(nowSeconds() + 600))
    const banned = { status: 403, code: 'banned', headers: retryAfter }
    await expectRefusal([by(principal()), admit({ admission: admission(), limits })], {}, banned)
  })

  test('admit answers 503 with Retry-After if Redis does not answer', async () => {
    redis.setAnswering(false)
    await expectRefusal(
      [by(principal()), admit({ admission: admission() })],
      {},
      {
        status: 503,
        code: 'dependency_unavailable',
        headers: retryAfter,
      },
    )
  })

  test('throttle answers 429, and banOffenders 403 without the challenge', async () => {
    const failures = createAuthenticationFailures({
      limit: 1,
      windowSeconds: 60,
      now: Date.now,
      counter: createFailureCounter(rest()),
    })
    const guarded = [clientAddress(), throttle({ failures, verifier }), authenticate({ verifier })]
    const headers = { ...forged, 'cf-connecting-ip': '203.0.113.7' }
    await expectRefusal(guarded, { headers }, { status: 401, code: 'invalid_token' })
    const limited = { ...limitedBy, limit: 'authentication_failures' }
    await expectRefusal(guarded, { headers }, limited)

    const counter = createViolationCounter(rest(), Date.now)
    const violations = createViolations({ rule: DEFAULT_BANS, counter, now: Date.now })
    violations.learn('203.0.113.7', 600)
    const stages = [clientAddress(), banOffenders({ violations }), authenticate({ verifier })]
    const { response, isReached } = await responseOf(stages, { headers })
    expect(response.headers.has('www-authenticate')).toBe(false)
    await expectProblem(response, { status: 403, code: 'banned', headers: retryAfter })
    expect(isReached()).toBe(false)
  })
})

test('an error handler of the app that knows only HTTPException answers correctly too', async () => {
  const app = new Hono()
  app.onError((error, c) =>
    error instanceof HTTPException ? error.getResponse() : c.text('defect', 500),
  )
  app.get('/denied', () => {
    throw new Denied({ code: 'not_found' })
  })
  app.get('/unavailable', () => {
    throw new Unavailable('redis', 'timeout')
  })
  await expectProblem(await app.request('/denied'), { status: 404, code: 'not_found' })
  await expectProblem(await app.request('/unavailable'), {
    status: 503,
    code: 'dependency_unavailable',
    headers: { 'retry-after': '5' },
  })
})

test('problemHandler adds the request id and the metadata of the protected resource, and nothing else differs', async () => {
  const build = () => {
    const app = new Hono()
    app.use(requestId())
    app.get('/', authenticate({ verifier }), (c) => c.text('reached'))
    return app
  }
  const plain = await build().request('/')
  const handled = await build()
    .onError(problemHandler({ publicUrl: GATEWAY }))
    .request('/')
  const { requestId: id, ...body } = (await handled.json()) as Record<string, unknown>
  expect(id).toBe(handled.headers.get('x-request-id'))
  expect(body).toEqual(await plain.json())
  const fields = ({ headers, status }: Response) => ({
    ...Object.fromEntries(headers),
    'x-request-id': '',
    status,
  })
  const challenge = plain.headers.get('www-authenticate')
  const metadata = `resource_metadata="${GATEWAY}/.well-known/oauth-protected-resource"`
  expect(fields(handled)).toEqual({
    ...fields(plain),
    'www-authenticate': `${challenge}, ${metadata}`,
  })
})

test("problemHandler answers with the response of the app's own HTTPException", async () => {
  const own = new Response('gone', { status: 410, headers: { 'X-Own': '1' } })
  const app = new Hono()
  app.onError(problemHandler())
  app.use(requestId())
  app.get('/message', () => {
    throw new HTTPException(404, { message: 'no such note' })
  })
  app.get('/response', () => {
    throw new HTTPException(410, { res: own })
  })
  const message = await app.request('/message')
  expect([message.status, await message.text()]).toEqual([404, 'no such note'])
  expect(message.headers.has('x-request-id')).toBe(true)
  const response = await app.request('/response')
  expect([response.status, await response.text()]).toEqual([410, 'gone'])
  expect(response.headers.get('x-own')).toBe('1')
})

test('a denial has no stack, and a failure of a dependency has one', () => {
  expect(new Denied({ code: 'not_found' }).stack).not.toContain('\n')
  expect(new Unavailable('redis', 'timeout').stack).toContain('\n')
})
