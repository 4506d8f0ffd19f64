import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import { forget, recordsOf, setMode } from '../harness/control.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, mint, REMOTE_ISSUER } from '../harness/issuer.ts'
import { usualOrLong } from '../harness/long.ts'
import { redisVars, startTestRedis } from '../harness/redis.ts'
import type { Observed } from '../origin/observed-gateway.ts'
import { runtimeOf } from '../origin/runtimes.ts'

const stack = inject('stack')
const [here] = stack.gateways

/** Rounds of 100 tokens, each with an unknown key id. The gateway may fetch the keys once. */
const ROUNDS = usualOrLong(3, 10)

const claims = { iss: REMOTE_ISSUER }
const get = async (token: string) => {
  const headers = { authorization: `Bearer ${token}`, ...fromAddress(newAddress()) }
  const response = await fetch(`${here}/orders`, { headers })
  await response.text()
  return response
}

afterEach(async () => {
  await setMode(stack.keySet, 'serve')
  await forget(stack.origin)
})

describe('the key set of an issuer', () => {
  test('100 concurrent first requests fetch it once, and all are served [R08]', async () => {
    const held: ServerResponse[] = []
    let fetches = 0
    const issuer = await startHttpServer((_, response) => {
      fetches += 1
      held.push(response)
    })
    const redis = await startTestRedis()
    const isolate = await runtimeOf(stack.runtime).start({
      entry: 'test/origin/observed-gateway.ts',
      vars: {
        ...redisVars(redis),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: stack.origin.url,
        ISSUERS: JSON.stringify([
          { issuer: REMOTE_ISSUER, audience: AUDIENCE, jwksUri: `${issuer.url}/jwks.json` },
        ]),
      },
    })
    const url = `http://127.0.0.1:${isolate.port}`
    async function statusOf(token: string): Promise<number> {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${url}/single/page`, { headers })
      await response.text()
      return response.status
    }
    try {
      const tokens = await Promise.all(
        Array.from({ length: 100 }, () => mint(stack.remoteKey, { claims })),
      )
      const answers = tokens.map(statusOf)
      await expect.poll(() => held.length, { timeout: 20_000 }).toBe(1)
      // Answered after the requests that wait for the keys.
      await (await fetch(`${url}/-/healthz`)).text()
      for (const response of held)
        response.end(JSON.stringify({ keys: [stack.remoteKey.publicJwk] }))
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
      expect(fetches).toBe(1)
      const { admitted, decisions } = (await (await fetch(`${url}/read-here`)).json()) as Observed
      expect(admitted).toBe(100)
      expect(new Set(decisions.map(({ reason }) => reason))).toEqual(new Set(['ok']))
    } finally {
      await isolate.stop()
      await issuer.close()
      await redis.close()
    }
  })

  test('hundreds of unknown key ids, 100 at a time, fetch it at most once and delay no other caller [R07, S07]', async () => {
    const stranger = await createKey('stranger')
    await forget(stack.keySet)
    await forget(stack.origin)
    const known = await mint(stack.remoteKey, { claims })
    for (let round = 0; round < ROUNDS; round++) {
      const tokens = await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          mint(stranger, { claims, header: { kid: `unknown-${round}-${index}` } }),
        ),
      )
      const [served, ...refused] = await Promise.all([get(known), ...tokens.map(get)])
      expect(served?.status).toBe(200)
      expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([401]))
    }
    expect((await recordsOf(stack.keySet)).length).toBeLessThanOrEqual(1)
    const subjects = await recordsOf(stack.origin)
    expect(subjects.length).toBe(ROUNDS)
  })

  test.each(['refuse', 'hang', 'error'] as const)(
    'while the issuer is down (%s), tokens with cached keys are accepted [R09]',
    async (mode) => {
      await setMode(stack.keySet, mode)
      const fresh = await mint(stack.remoteKey, { claims })
      expect((await get(fresh)).status).toBe(200)
    },
  )

  test('the key of one issuer verifies no token of another [S12]', async () => {
    await forget(stack.origin)
    const crossed = [
      await mint(stack.remoteKey),
      await mint(stack.inlineKey, { claims }),
      await mint(stack.inlineKey, { claims, header: { kid: stack.remoteKey.kid } }),
      await mint(stack.remoteKey, { header: { kid: stack.inlineKey.kid } }),
    ]
    for (const token of crossed) expect((await get(token)).status).toBe(401)
    expect(await recordsOf(stack.origin)).toEqual([])
  })
})
