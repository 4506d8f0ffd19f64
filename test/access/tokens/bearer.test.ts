import { describe, expect, it } from 'vitest'
import { bearerToken } from '../../../src/access/tokens/credential.ts'
import { DEFAULT_MAX_TOKEN_BYTES } from '../../../src/validators/protection.ts'
import { outcome } from './signer.ts'

const GOOD = 'eyJh.eyJz.c2ln'
const read = (header: string | undefined) => outcome(() => bearerToken(header))

describe('the grammar of bearer tokens', () => {
  it('accepts any letter case of the scheme and any number of spaces [S28]', () => {
    for (const header of [`Bearer ${GOOD}`, `bearer ${GOOD}`, `BEARER ${GOOD}`, `Bearer   ${GOOD}`])
      expect(bearerToken(header)).toBe(GOOD)
  })

  it('treats a missing header or another scheme as a missing token, not as an invalid one [S29]', async () => {
    for (const header of [
      undefined,
      'Basic YWxpY2U6c2VjcmV0',
      'DPoP a.b.c',
      'Digest',
      'Bearerx a.b.c',
    ])
      expect(await read(header), header).toBe('missing_token')
  })

  it('refuses a scheme without a token [S28]', async () => {
    for (const header of ['Bearer', 'Bearer ', 'bearer    '])
      expect(await read(header)).toBe('token_rejected:empty')
  })

  it('refuses lists, two tokens, tabs and unusual spaces [S28]', async () => {
    for (const header of [
      `Bearer ${GOOD}, Bearer ${GOOD}`,
      `Bearer ${GOOD},Bearer ${GOOD}`,
      `Bearer ${GOOD} ${GOOD}`,
      `Bearer ${GOOD} `,
      `Bearer\t${GOOD}`,
      `Bearer \t${GOOD}`,
      `Bearer\u00a0${GOOD}`,
      `Bearer \u00a0${GOOD}`,
      ` Bearer ${GOOD}`,
      `Bearer ${GOOD}\n`,
      `Bearer ${GOOD}\r\nX: y`,
      `Bearer, ${GOOD}`,
      `Bearer: ${GOOD}`,
      `Bearer "${GOOD}"`,
      `Bearer token=${GOOD}`,
      '',
      ' ',
      ',',
      GOOD.repeat(2),
    ]) {
      expect(await read(header), JSON.stringify(header)).toMatch(
        /^(token_rejected:|(missing_token|ambiguous_credentials)$)/,
      )
    }
    // If the header starts with Bearer and contains more, the token is invalid, not missing.
    expect(await read(`Bearer ${GOOD}, Bearer ${GOOD}`)).toBe('ambiguous_credentials')
    expect(await read(`Bearer\t${GOOD}`)).toBe('token_rejected:authorization_grammar')
  })

  it('refuses anything but three non-empty segments [S20]', async () => {
    for (const token of [
      'eyJh',
      'eyJh.eyJz',
      'eyJh.eyJz.c2ln.c2ln',
      'eyJh.eyJz.c2ln.c2ln.c2ln',
      '.eyJz.c2ln',
      'eyJh..c2ln',
      'eyJh.eyJz.',
      '.eyJh.eyJz.c2ln',
      'eyJh.eyJz.c2ln.',
      '..',
      '...',
    ]) {
      expect(await read(`Bearer ${token}`), token).toBe('token_rejected:segments')
    }
    expect(await read('Bearer {"payload":"eyJz","signature":"c2ln"}')).toMatch(/^token_rejected/)
  })

  it('refuses a segment with padding, invalid characters or non-canonical bits, in each position [S19]', async () => {
    const good = ['eyJh', 'eyJz', 'c2ln']
    // The last character has 16 spare values after one byte and 4 after two; one of them is
    // canonical.
    for (const bad of [
      'AA==',
      'AA=',
      'AAA=',
      'A+AA',
      'A/AA',
      'A%AA',
      'AA\u00e9A',
      'A',
      'AAAAA',
      'AB',
      'AP',
      'A_',
      'AAB',
      'AAD',
      'AA_',
      'AAAAAB',
      'A*AA',
      'A~AA',
    ]) {
      for (const place of [0, 1, 2]) {
        const token = good.with(place, bad).join('.')
        expect(await read(`Bearer ${token}`), token).toBe('token_rejected:base64url')
      }
    }
    for (const fine of ['AA', 'Ag', 'AQ', 'Aw', 'AAA', 'AAE', 'AA8', 'AAAAAA', '_-_-']) {
      expect(await read(`Bearer ${good.with(2, fine).join('.')}`), fine).toBe('ok')
    }
  })

  it('accepts exactly one spelling of each segment [S19]', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const accepted = (length: number) =>
      [...alphabet].filter((last) => {
        try {
          return bearerToken(`Bearer AAAA.AAAA.${'A'.repeat(length - 1)}${last}`) !== ''
        } catch {
          return false
        }
      })
    expect(accepted(2).length).toBe(4)
    expect(accepted(3).length).toBe(16)
    expect(accepted(4).length).toBe(64)
    expect(accepted(5).length).toBe(0)
    for (const last of [...accepted(2), ...accepted(3)]) {
      const segment = `A${last}`
      if (accepted(2).includes(last))
        expect(Buffer.from(segment, 'base64url').toString('base64url')).toBe(segment)
    }
  })

  it('accepts a token of 16,384 bytes, and refuses a longer one by its length alone [S21]', async () => {
    const longest = `AAAA.AAAA.${'A'.repeat(DEFAULT_MAX_TOKEN_BYTES - 12)}AA`
    expect(longest).toHaveLength(DEFAULT_MAX_TOKEN_BYTES)
    expect(await read(`Bearer ${longest}`)).toBe('ok')
    expect(await read(`Bearer A${longest}`)).toBe('token_rejected:length')
    expect(await read(`Basic ${'A'.repeat(120_000)}`)).toBe('token_rejected:length')
    expect(await read(`Bearer ${' '.repeat(120_000)}x`)).toBe('token_rejected:length')
  })
})
