import { createHmac, randomBytes as nodeRandomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import {
  deriveSuccessor,
  newNonce,
  newRefreshToken,
  parseRefreshToken,
} from '../../../src/access/tokens/refresh-token.ts'
import { randomBytes } from '../../../src/crypto/random.ts'
import { observed } from '../../harness/own-calls.ts'

const first = () => newRefreshToken(randomBytes)
const parsed = async (text: string) => {
  const token = await parseRefreshToken(text)
  if (token === undefined) throw new Error(`not a refresh token: ${text}`)
  return token
}

describe('a refresh token', () => {
  it('is unique in 10,000, with 384 random bits of the CSPRNG [S41]', async () => {
    let drawn = 0
    const onCall = ([bytes]: readonly unknown[]) => {
      drawn += (bytes as Uint8Array).byteLength
    }
    const tokens = await observed([{ target: crypto, name: 'getRandomValues', onCall }], () =>
      Promise.all(Array.from({ length: 10_000 }, first)),
    )
    expect(drawn).toBe(10_000 * (16 + 32))
    for (const index of [0, 1])
      expect(new Set(tokens.map(({ text }) => text.split('.')[index])).size).toBe(10_000)
    expect(tokens.filter(({ text }) => !/^[\w-]{22}\.[\w-]{43}$/.test(text))).toEqual([])
  })

  it('is stored as hashes of its family id and of the complete token', async () => {
    const token = await first()
    expect(await parseRefreshToken(token.text)).toEqual(token)
    expect(token.hash).toBe(await credentialHash(token.text))
    expect(token.familyHash).toBe(await credentialHash(token.text.slice(0, 22)))
  })

  const good = `${'A'.repeat(22)}.${'A'.repeat(43)}`
  it.each([
    '',
    '.',
    'A'.repeat(66),
    good.slice(1),
    good.slice(0, -1),
    `${good}A`,
    `${good}.`,
    `${good}=`,
    ` ${good}`,
    `${good}\n`,
    good.replace('.', '..'),
    good.replace('.', ':'),
    good.replace('A', '*'),
    good.replace('A', '+'),
    good.replace('A', 'Å'),
    `${'A'.repeat(21)}B.${'A'.repeat(43)}`,
    `${'A'.repeat(22)}.${'A'.repeat(42)}B`,
    'eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl',
    'A'.repeat(1_000_000),
  ])('has one spelling only; not %.80j [S19]', async (text) => {
    expect(await parseRefreshToken(good)).toBeDefined()
    expect(await parseRefreshToken(text)).toBeUndefined()
  })
})

describe('the successor of a refresh token', () => {
  it('can be derived again from the token and the nonce, and from nothing less [S37]', async () => {
    const [token, other] = [await first(), await first()]
    const [nonce, later] = [newNonce(randomBytes), newNonce(randomBytes)]
    const successor = await deriveSuccessor(token, nonce)
    expect(await deriveSuccessor(await parsed(token.text), nonce)).toEqual(successor)
    const wrong = [await deriveSuccessor(token, later), await deriveSuccessor(other, nonce)]
    for (const { refreshToken, seed } of wrong) {
      expect(refreshToken.text.split('.')[1]).not.toBe(successor.refreshToken.text.split('.')[1])
      expect(seed).not.toEqual(successor.seed)
    }
  })

  it('is the same in every version of the gateway: HMAC-SHA-256 under the token', async () => {
    const [token, nonce] = [await first(), newNonce(randomBytes)]
    const hmac = (text: string) => createHmac('sha256', token.text).update(text)
    const { refreshToken, seed } = await deriveSuccessor(token, nonce)
    const secret = hmac(`refresh_token ${nonce}`).digest('base64url')
    expect(refreshToken.text).toBe(`${token.text.slice(0, 22)}.${secret}`)
    expect(Buffer.from(seed)).toEqual(hmac(`access_token ${nonce}`).digest())
  })

  it('belongs to the same family, and is itself a refresh token', async () => {
    const token = await first()
    const { refreshToken, seed } = await deriveSuccessor(token, newNonce(randomBytes))
    expect(refreshToken).toEqual(await parsed(refreshToken.text))
    expect(refreshToken.familyHash).toBe(token.familyHash)
    expect(refreshToken.text).not.toBe(token.text)
    expect(seed).toHaveLength(32)
    expect(Buffer.from(seed).toString('base64url')).not.toBe(refreshToken.text.split('.')[1])
  })

  it('never repeats in 10,000 generations [S41]', async () => {
    // Many families of a few generations instead of one long one, so that the hashing is parallel.
    const seen = new Set<string>()
    await Promise.all(
      Array.from({ length: 500 }, async () => {
        let token = await first()
        for (let generation = 0; generation < 20; generation++) {
          const successor = await deriveSuccessor(token, newNonce(randomBytes))
          seen.add(successor.refreshToken.text).add(Buffer.from(successor.seed).toString('hex'))
          token = successor.refreshToken
        }
      }),
    )
    expect(seen.size).toBe(20_000)
  })

  it('any random bytes give a token that can be parsed', async () => {
    const bytes = [(length: number) => new Uint8Array(length).fill(255), nodeRandomBytes]
    for (const random of bytes) {
      const token = await newRefreshToken((length) => new Uint8Array(random(length)))
      expect(await parseRefreshToken(token.text)).toEqual(token)
    }
  })
})
