import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addressBanKey, subjectBanKey } from '../../../src/access/abuse/ban.ts'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal, TokenVerifier } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import type { Reference, ReferenceRecord } from '../../../src/access/tokens/reference.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { Unavailable } from '../../../src/errors.ts'
import { admit } from '../../../src/middleware/admit.ts'
import { authenticate } from '../../../src/middleware/authenticate.ts'
import { callerOf, type GatewayVariables } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import type { PolicyLimit } from '../../../src/policy/policy.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, GATEWAY, IDP, nowSeconds, recordOf, stored, takenOf } from './callers.ts'

/** These tests send only references. */
const verifier: TokenVerifier = {
  verify: () => Promise.reject(new Error('the tests send no JWT')),
  recall: () => undefined,
}
const rule = (claims: Partial<PolicyLimit> = {}): PolicyLimit => ({
  name: 'standard',
  limit: 3,
  windowSeconds: 86_400,
  by: 'subject',
  onUnavailable: 'deny',
  ...claims,
})

describe.each(['auto', 'embedded'] as const)('references over Redis (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    await redis.direct.flushall()
    // Loads the scripts into Redis, so that no test pays for it.
    const gateway = isolate([rule()])
    const { text } = await keep()
    for (const _ of ['cold', 'warm']) await gateway.send(text)
    await redis.direct.flushall()
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const keep = (claims: Partial<ReferenceRecord> = {}) =>
    stored(createReferenceStore(rest()), recordOf(claims))

  /** Creates an app with the two stages. Records the requests that reached its handler. */
  function isolate(limits: readonly PolicyLimit[] = []) {
    const reached: (Principal | null)[] = []
    const outcomes: { principal: Principal | null | undefined; reason: unknown }[] = []
    const references = createReferences({ audience: GATEWAY })
    const store = createRedisAdmissionStore(rest())
    const admission = createAdmission({ store, references, now: Date.now })
    const app = new Hono<{ Variables: GatewayVariables }>()
    app.onError(problemHandler())
    app.use(async (c, next) => {
      c.set('portcullis.clientAddress', c.req.header('x-address') ?? ADDRESS)
      await next()
      const error = c.error as { denial?: unknown } | undefined
      outcomes.push({ principal: c.get('portcullis.principal'), reason: error?.denial ?? error })
    })
    app.use(authenticate({ verifier, references }), admit({ admission, limits }))
    app.get('/', (c) => {
      reached.push(callerOf(c))
      return c.text('ok')
    })
    const send = async (text: string, address = ADDRESS) =>
      app.request('/', {
        headers: { authorization: `Bearer ${text}`, 'x-address': address },
      })
    return { send, reached, outcomes }
  }

  const denialOf = ({ outcomes }: ReturnType<typeof isolate>) => outcomes.at(-1)?.reason
  const windows = async () => (await redis.direct.keys('pc:limit:*')).length

  test('an uncached reference costs exactly one call, with every lookup and two limits, and so does a cached one', async () => {
    const { text } = await keep()
    const gateway = isolate([rule(), rule({ name: 'wide', by: 'client', limit: 9 })])
    for (const remaining of [2, 1]) {
      const before = redis.calls()
      const response = await gateway.send(text)
      expect(response.status).toBe(200)
      expect(response.headers.get('ratelimit')).toMatch(`"standard";r=${remaining};t=`)
      expect(redis.calls() - before).toBe(1)
    }
    expect(gateway.reached[0]).toMatchObject({ issuer: IDP, tokenIssuer: GATEWAY })
    expect(gateway.reached[1]).toBe(gateway.reached[0])
  })

  test('a principal counts in the same windows with an uncached reference, a cached reference and a JWT', async () => {
    const record = recordOf()
    const store = createReferenceStore(rest())
    const limits = (['subject', 'client', 'tenant', 'address'] as const).map((by) =>
      rule({ name: `by-${by}`, by, limit: 9 }),
    )
    const gateway = isolate(limits)
    const first = await stored(store, record)
    await gateway.send(first.text)
    await gateway.send(first.text)
    await gateway.send((await stored(store, { ...record, tokenId: crypto.randomUUID() })).text)
    const counters = await redis.direct.keys('pc:limit:*')
    expect(counters.length).toBe(4)
    for (const key of counters) expect(takenOf(await redis.direct.get(key)), key).toBe(3)
    expect(
      counters.some((key) => key.includes(`by-client:client:${encodeURIComponent(GATEWAY)}:`)),
    ).toBe(true)
    expect(
      counters.some((key) => key.includes(`by-subject:subject:${encodeURIComponent(IDP)}:`)),
    ).toBe(true)
  })

  test('an unknown reference is 401, counts only in limits by address, and costs a call each time', async () => {
    const gateway = isolate([rule(), rule({ name: 'place', by: 'address', limit: 2 })])
    for (let count = 0; count < 2; count++) {
      const before = redis.calls()
      const response = await gateway.send(crypto.randomUUID())
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
      expect(redis.calls() - before).toBe(1)
      expect(denialOf(gateway)).toEqual({ code: 'token_rejected', check: 'reference_unknown' })
    }
    expect(await windows()).toBe(1)
    expect((await gateway.send(crypto.randomUUID())).status).toBe(429)
    const before = redis.calls()
    expect((await gateway.send(crypto.randomUUID())).status).toBe(429)
    expect(redis.calls() - before).toBe(0)
    expect(gateway.reached).toEqual([])
  })

  test.each([
    ['exp', { expiresAtSeconds: 1_000 }],
    ['aud', { audiences: ['https://elsewhere.test'] }],
    ['dpop_binding', { confirmation: 'k'.repeat(43) }],
  ] as const)(
    "a reference that fails %s is 401 and spends nothing of its owner's limits [S13, S14]",
    async (check, claims) => {
      const reference = await keep()
      const record = recordOf(claims as Partial<ReferenceRecord>)
      await createReferenceStore(rest()).put(reference.hash, record)
      const gateway = isolate([rule()])
      // An expired record lives only a moment longer; this keeps it long enough.
      await redis.direct.persist(DEFAULT_KEYS.reference + reference.hash)
      expect((await gateway.send(reference.text)).status).toBe(401)
      expect(denialOf(gateway)).toEqual({
        code: 'token_rejected',
        check,
        signer: { issuer: GATEWAY, subject: record.subject },
      })
      expect(await windows()).toBe(0)
      expect(gateway.reached).toEqual([])
    },
  )

  test.each(['cold', 'warm'] as const)(
    'a revoked reference is 401 on the next request (%s), has its actor in the audit, and spends nothing [S30]',
    async (state) => {
      const record = recordOf()
      const { text } = await stored(createReferenceStore(rest()), record)
      const gateway = isolate(state === 'cold' ? [rule()] : [])
      if (state === 'warm') expect((await gateway.send(text)).status).toBe(200)
      await createRevocations(rest(), Date.now).revokeToken({
        tokenIdHash: await tokenIdHash(GATEWAY, record.tokenId),
        untilSeconds: nowSeconds() + 600,
      })
      expect((await gateway.send(text)).status).toBe(401)
      expect(denialOf(gateway)).toEqual({ code: 'token_revoked', by: 'token' })
      expect(gateway.outcomes.at(-1)?.principal).toMatchObject({ subject: record.subject })
      expect(await windows()).toBe(0)
      expect(gateway.reached.length).toBe(state === 'warm' ? 1 : 0)
      const before = redis.calls()
      expect((await gateway.send(text)).status).toBe(401)
      expect(redis.calls() - before).toBe(0)
    },
  )

  test('a record that is deleted and revoked is refused by isolates that cached it too', async () => {
    const record = recordOf()
    const store = createReferenceStore(rest())
    const { text, hash } = await stored(store, record)
    const [here, there] = [isolate(), isolate()]
    expect((await here.send(text)).status).toBe(200)
    await createRevocations(rest(), Date.now).revokeToken({
      tokenIdHash: await tokenIdHash(GATEWAY, record.tokenId),
      untilSeconds: nowSeconds() + 310,
    })
    await store.remove(hash)
    expect((await here.send(text)).status).toBe(401)
    expect((await there.send(text)).status).toBe(401)
  })

  test.each([
    ['session', GATEWAY],
    ['client', GATEWAY],
    ['tenant', IDP],
    ['tenant', GATEWAY],
    ['subject', IDP],
    ['subject', GATEWAY],
  ] as const)(
    'a cutoff by %s of %s revokes uncached and cached references alike [S33]',
    async (kind, issuer) => {
      const atSeconds = nowSeconds()
      const record = recordOf({ issuedAtSeconds: atSeconds })
      const store = createReferenceStore(rest())
      const { text } = await stored(store, record)
      const later = await stored(store, {
        ...record,
        tokenId: crypto.randomUUID(),
        issuedAtSeconds: atSeconds + 1,
      })
      const [cold, warm] = [isolate([rule()]), isolate()]
      expect((await warm.send(text)).status).toBe(200)
      await createRevocations(rest(), Date.now).revokeBefore({
        kind,
        issuer,
        value: record[kind] ?? '',
        atSeconds,
        ttlSeconds: 600,
      })
      for (const gateway of [cold, warm]) {
        expect((await gateway.send(text)).status).toBe(401)
        expect(denialOf(gateway)).toEqual({ code: 'token_revoked', by: kind })
      }
      expect(await windows()).toBe(0)
      expect((await cold.send(later.text)).status).toBe(200)
    },
  )

  test('a cutoff or a ban of another issuer affects no reference [S12]', async () => {
    const record = recordOf()
    const { text } = await stored(createReferenceStore(rest()), record)
    for (const kind of ['session', 'client'] as const) {
      await createRevocations(rest(), Date.now).revokeBefore({
        kind,
        issuer: IDP,
        value: record[kind] ?? '',
        atSeconds: nowSeconds(),
        ttlSeconds: 600,
      })
    }
    const ban = await subjectBanKey(DEFAULT_KEYS, 'https://other.test', record.subject)
    await redis.direct.set(ban, String(nowSeconds() + 100), 'EX', 100)
    expect((await isolate().send(text)).status).toBe(200)
  })

  test('banned addresses and subjects are 403, cached or not, and nothing is counted', async () => {
    const record = recordOf()
    const { text } = await stored(createReferenceStore(rest()), record)
    const limits = [rule(), rule({ name: 'place', by: 'address' })]
    const till = String(nowSeconds() + 100)
    await redis.direct.set(await addressBanKey(DEFAULT_KEYS, '192.0.2.9'), till, 'EX', 100)
    await redis.direct.set(await subjectBanKey(DEFAULT_KEYS, IDP, record.subject), till, 'EX', 100)
    for (const [credential, address, by] of [
      [crypto.randomUUID(), '192.0.2.9', 'address'],
      [text, ADDRESS, 'subject'],
    ] as const) {
      const gateway = isolate(limits)
      const response = await gateway.send(credential, address)
      expect(response.status).toBe(403)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(denialOf(gateway)).toMatchObject({ code: 'banned', by })
      expect(gateway.reached).toEqual([])
    }
    expect(await windows()).toBe(0)
  })

  test('an exhausted limit refuses uncached and cached references alike', async () => {
    const { text } = await keep()
    const limits = [rule({ limit: 1 })]
    expect((await isolate(limits).send(text)).status).toBe(200)
    const gateway = isolate(limits)
    const refused = await gateway.send(text)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    const before = redis.calls()
    expect((await gateway.send(text)).status).toBe(429)
    expect(redis.calls() - before).toBe(0)
    expect(gateway.reached).toEqual([])
  })

  test('a limit by a function of the principal costs an uncached reference a second call, and a cached one none', async () => {
    const { text } = await keep({ roles: ['gold'] })
    const by = ({ principal }: { principal: Principal | null }) => principal?.roles[0] ?? 'none'
    const gateway = isolate([
      rule({ name: 'first', limit: 9 }),
      rule({ name: 'grade', by, limit: 2 }),
      rule({ name: 'last', by: 'address', limit: 8 }),
    ])
    // Loads the limiter's own script too.
    await gateway.send((await keep()).text)
    const before = redis.calls()
    const response = await gateway.send(text)
    expect(redis.calls() - before).toBe(2)
    expect(response.headers.get('ratelimit')).toMatch('"grade";r=1;t=')
    await gateway.send(text)
    expect(redis.calls() - before).toBe(3)
    expect((await gateway.send(text)).status).toBe(429)
    expect(gateway.reached.length).toBe(3)
  })

  test('an unreadable record is 503, never "unknown" [R06]', async () => {
    const gateway = isolate([rule()])
    for (const value of ['', 'null', '[]', '{}', '{"record":{},"parts":{}}', 'no json', '7']) {
      const { text, hash } = await keep()
      await redis.direct.set(DEFAULT_KEYS.reference + hash, value, 'EX', 60)
      expect((await gateway.send(text)).status, value).toBe(503)
    }
    const { text, hash } = await keep()
    await redis.direct.del(DEFAULT_KEYS.reference + hash)
    await redis.direct.hset(DEFAULT_KEYS.reference + hash, 'a', 'b')
    expect((await gateway.send(text)).status).toBe(503)
    expect(gateway.reached).toEqual([])
  })

  test('a record with the key parts of another subject is 503, because the wrong keys were read [R06]', async () => {
    const gateway = isolate([rule()])
    for (const part of [
      'token',
      'issuer',
      'tokenIssuer',
      'subject',
      'client',
      'tenant',
      'session',
    ]) {
      const { text, hash } = await keep()
      const value = JSON.parse((await redis.direct.get(DEFAULT_KEYS.reference + hash)) ?? '')
      value.parts[part] = 'mallory'
      await redis.direct.set(DEFAULT_KEYS.reference + hash, JSON.stringify(value), 'EX', 60)
      expect((await gateway.send(text)).status, part).toBe(503)
      delete value.parts[part]
      await redis.direct.set(DEFAULT_KEYS.reference + hash, JSON.stringify(value), 'EX', 60)
      expect((await gateway.send(text)).status, part).toBe(503)
    }
    expect(gateway.reached).toEqual([])
  })

  test('a cutoff of the wrong type or that is not a number is 503, not "no cutoff" [R12]', async () => {
    const record = recordOf()
    const { text } = await stored(createReferenceStore(rest()), record)
    const revokeBefore = { kind: 'session', issuer: GATEWAY, value: record.session ?? '' } as const
    await createRevocations(rest(), Date.now).revokeBefore({
      ...revokeBefore,
      atSeconds: 1,
      ttlSeconds: 60,
    })
    const [key = ''] = await redis.direct.keys('pc:cutoff:*')
    const gateway = isolate([rule()])
    await redis.direct.set(key, 'soon', 'EX', 60)
    expect((await gateway.send(text)).status).toBe(503)
    await redis.direct.del(key)
    await redis.direct.hset(key, 'a', 'b')
    expect((await gateway.send(text)).status).toBe(503)
    expect(await windows()).toBe(0)
    expect(gateway.reached).toEqual([])
  })

  test('any value of a revocation counts, and an empty cutoff or ban is 503 [R12]', async () => {
    const record = recordOf()
    const { text } = await stored(createReferenceStore(rest()), record)
    const revoked = `pc:revoked:${await tokenIdHash(GATEWAY, record.tokenId)}`
    for (const [key, status] of [
      [revoked, 401],
      [await revokedBeforeKey(DEFAULT_KEYS, 'subject', IDP, record.subject), 503],
      [await subjectBanKey(DEFAULT_KEYS, IDP, record.subject), 503],
      [await addressBanKey(DEFAULT_KEYS, ADDRESS), 503],
    ] as const) {
      await redis.direct.set(key, '', 'EX', 60)
      const [cold, warm] = [isolate([rule({ limit: 9 })]), isolate([rule({ limit: 9 })])]
      expect((await cold.send(text)).status).toBe(status)
      await redis.direct.del(key)
      expect((await warm.send(text)).status).toBe(200)
      await redis.direct.set(key, '', 'EX', 60)
      expect((await warm.send(text)).status).toBe(status)
      await redis.direct.del(key)
    }
  })

  test.each(['deny', 'allow'] as const)(
    'a window of the wrong type fails as its onUnavailable says (%s) [R12]',
    async (onUnavailable) => {
      const limits = [rule({ onUnavailable })]
      const record = recordOf()
      const store = createReferenceStore(rest())
      await isolate(limits).send((await stored(store, record)).text)
      const [key = ''] = await redis.direct.keys('pc:limit:*')
      await redis.direct.del(key)
      await redis.direct.hset(key, 'a', 'b')
      const { text } = await stored(store, { ...record, tokenId: crypto.randomUUID() })
      expect((await isolate(limits).send(text)).status).toBe(onUnavailable === 'deny' ? 503 : 200)
    },
  )

  test('after SCRIPT FLUSH the script is sent once, and the request counted once [R12]', async () => {
    const { text } = await keep()
    const gateway = isolate([rule()])
    await redis.direct.script('FLUSH')
    const before = redis.calls()
    const response = await gateway.send(text)
    expect(response.headers.get('ratelimit')).toMatch('"standard";r=2;t=')
    expect(redis.calls() - before).toBe(2)
  })

  test('an unreachable Redis is 503 for an uncached reference, whatever its limits say [R01]', async () => {
    const away = createRedisAdmissionStore(
      createRedisRest({ url: 'http://127.0.0.1:1', token: 'x', timeoutMs: 200 }),
    )
    const references = createReferences({ audience: GATEWAY })
    const admission = createAdmission({ store: away, references, now: Date.now })
    const reference: Reference = { kind: 'opaque', text: crypto.randomUUID(), hash: 'h' }
    const request = { reference, proof: undefined, address: ADDRESS, limits: [] }
    await expect(admission.admitReference(request)).rejects.toBeInstanceOf(Unavailable)
  })

  test('100 concurrent uncached requests at a limit of 10 over two isolates admit exactly 10 [R15]', async () => {
    const record = recordOf()
    const store = createReferenceStore(rest())
    const tokens = await Promise.all(
      Array.from({ length: 100 }, () => stored(store, { ...record, tokenId: crypto.randomUUID() })),
    )
    const gateways = [isolate([rule({ limit: 10 })]), isolate([rule({ limit: 10 })])] as const
    const statuses = await Promise.all(
      tokens.map(async ({ text }, index) => (await gateways[index % 2 ? 0 : 1].send(text)).status),
    )
    expect(statuses.filter((status) => status === 200).length).toBe(10)
    expect(gateways[0].reached.length + gateways[1].reached.length).toBe(10)
  })
})

test('behind authenticate alone, a handler that reads the principal of a reference throws', async () => {
  const app = new Hono<{ Variables: GatewayVariables }>()
  const defects: string[] = []
  app.onError((error, c) => {
    defects.push(error.message)
    return c.text('', 500)
  })
  app.use(authenticate({ verifier, references: createReferences({ audience: GATEWAY }) }))
  app.get('/', (c) => c.json(callerOf(c)))
  const headers = { authorization: `Bearer ${crypto.randomUUID()}` }
  expect((await app.request('/', { headers })).status).toBe(500)
  expect(defects).toEqual(['callerOf: authenticate() and admit() must run before it'])
})
