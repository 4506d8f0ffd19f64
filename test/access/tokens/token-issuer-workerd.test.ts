import { join } from 'node:path'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { IssuedToken } from '../../../src/access/tokens/access-grant.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { publicKeySet } from '../../../src/access/tokens/signing-keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { GATEWAY, keys, signingKeys } from './issuing.ts'

/** Without `nodejs_compat`. */
let worker: Running
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
  worker = await startWorkerd({
    entry: join(import.meta.dirname, 'workers/issuer.ts'),
    vars: { REST_URL: redis.url, REST_TOKEN: redis.token, SIGNING_KEYS: signingKeys },
  })
})
afterAll(async () => {
  await worker.stop()
  await redis.close()
})

async function post(body: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${worker.port}/`, { method: 'POST', body })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.text()
}

interface Answer {
  readonly refreshToken: string
  readonly issued: readonly IssuedToken[]
}

it('in workerd, tokens of every kind are issued, and 20 refreshes of one session give the same result', async () => {
  const refreshToken = await post('')
  const texts = await Promise.all(Array.from({ length: 20 }, () => post(refreshToken)))
  const answers = texts.map((text) => JSON.parse(text) as Answer)
  expect(new Set(answers.map((answer) => answer.refreshToken)).size).toBe(1)
  expect(new Set(answers.map(({ issued }) => issued.at(-1)?.token)).size).toBe(1)
  const ids = answers.flatMap(({ issued }) => issued.map(({ tokenId }) => tokenId))
  expect(new Set(ids).size).toBe(1)

  const [es256, rs256, eddsa, ed25519, opaque] = answers[0]?.issued ?? []
  for (const issued of [es256, rs256, eddsa, ed25519])
    expect(
      (await jwtVerify(issued?.token ?? '', createLocalJWKSet(publicKeySet(keys)))).payload,
    ).toMatchObject({ iss: GATEWAY, sub: 'alice', jti: ids[0] })
  const references = createReferenceStore(
    createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 }),
  )
  expect(await references.find(await credentialHash(opaque?.token ?? ''))).toMatchObject({
    subject: 'alice',
    tokenId: ids[0],
  })
  await post(answers[0]?.refreshToken ?? '')
})
