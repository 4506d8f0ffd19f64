import { afterEach, describe, expect, inject, test } from 'vitest'
import { newAddress } from '../harness/address.ts'
import { forget, recordsOf, setMode } from '../harness/control.ts'
import { createKey, mint, REMOTE_ISSUER } from '../harness/issuer.ts'

const stack = inject('stack')
const [here] = stack.gateways

const claims = { iss: REMOTE_ISSUER }
const get = async (token: string) => {
  const headers = { authorization: `Bearer ${token}`, 'cf-connecting-ip': newAddress() }
  const response = await fetch(`${here}/orders`, { headers })
  await response.text()
  return response
}

afterEach(async () => {
  await setMode(stack.keySet, 'serve')
  await forget(stack.origin)
})

describe('keys of an issuer that publishes them', () => {
  test('R08: 50 concurrent first requests fetch them at most twice', async () => {
    const tokens = await Promise.all(
      Array.from({ length: 50 }, () => mint(stack.remoteKey, { claims })),
    )
    const responses = await Promise.all(tokens.map(get))
    // On a starved machine a call to Redis may miss its deadline; no token may be refused.
    expect(responses.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(responses.some(({ status }) => status === 200)).toBe(true)
    // Two gateways: each has asked for its readiness already.
    expect((await recordsOf(stack.keySet)).length).toBeLessThanOrEqual(2 * 2)
  })

  test('R07: 1,000 unknown keys, 100 at a time, fetch at most once and delay nobody else', async () => {
    const stranger = await createKey('stranger')
    await forget(stack.keySet)
    await forget(stack.origin)
    const known = await mint(stack.remoteKey, { claims })
    for (let round = 0; round < 10; round++) {
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
    expect(subjects.length).toBe(10)
  })

  test.each(['refuse', 'hang', 'error'] as const)(
    'R09: while the issuer is down (%s), tokens of known keys are good',
    async (mode) => {
      await setMode(stack.keySet, mode)
      const fresh = await mint(stack.remoteKey, { claims })
      expect((await get(fresh)).status).toBe(200)
    },
  )

  test('S12: the key of one issuer is good for no token of another', async () => {
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
