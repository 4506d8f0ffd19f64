/** Credentials of schemes that only the origin verifies, by the whole gateway in real workerd. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newAddress } from '../../harness/address.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'

const CREDENTIALS = ['Basic dTpw', 'Digest username="u", realm="r"', 'AWS4-HMAC-SHA256 a=b, c=d']

let redis: TestRedis
let origin: TestServer
let gateway: Running
let key: TestKey
let originCalls = 0
beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  key = await createKey('k1')
  origin = await startHttpServer((_, response) => {
    originCalls += 1
    response.end('ok')
  })
  gateway = await startWorkerd({
    entry: 'test/access/admission/workers/unverified.ts',
    vars: {
      ...redisVars(redis),
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
    },
  })
})
afterAll(async () => {
  await gateway?.stop()
  await origin?.close()
  await redis?.close()
})

/** Returns the status, the code of the problem, and how many requests the origin received. */
async function send(path: string, address: string, headers: Readonly<Record<string, string>>) {
  const before = originCalls
  const url = `http://127.0.0.1:${gateway.port}${path}`
  const response = await fetch(url, { headers: { 'cf-connecting-ip': address, ...headers } })
  const text = await response.text()
  const code = response.ok ? undefined : (JSON.parse(text) as { code: string }).code
  return { status: response.status, code, reached: originCalls - before }
}

test.each(CREDENTIALS)(
  'with a token in another source, "%s" is 400 and reaches no origin in workerd',
  async (authorization) => {
    const token = await mint(key, {})
    for (const path of ['/own', '/limited', '/observed']) {
      for (const other of [{ 'x-token': token }, { cookie: `__Host-token=${token}` }])
        expect(await send(path, newAddress(), { authorization, ...other })).toEqual({
          status: 400,
          code: 'ambiguous_credentials',
          reached: 0,
        })
      expect(await send(path, newAddress(), { authorization })).toMatchObject({
        status: 200,
        reached: 1,
      })
    }
  },
)

test('a ban of the credentials of an address stops those that only the origin verifies in workerd', async () => {
  const address = newAddress()
  const forged = await send('/own', address, { authorization: 'Bearer a.b.c' })
  expect(forged).toMatchObject({ status: 401, reached: 0 })
  // The ban is written behind the response.
  await expect.poll(() => redis.direct.keys('*ban*')).not.toEqual([])
  for (const path of ['/own', '/limited', '/observed']) {
    for (const authorization of CREDENTIALS)
      expect(await send(path, address, { authorization })).toEqual({
        status: 403,
        code: 'banned',
        reached: 0,
      })
    expect(await send(path, address, {})).toMatchObject({ status: 200, reached: 1 })
  }
})
