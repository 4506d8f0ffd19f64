import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import {
  bearerText,
  checkBinding,
  classifyToken,
  readCredential,
} from '../../../src/access/tokens/credential.ts'
import { DEFAULT_MAX_TOKEN_BYTES } from '../../../src/validators/protection.ts'
import { outcome } from './signer.ts'

const JWT = 'eyJh.eyJz.c2ln'
const UUID = '0b1f6a3e-8f5d-4c52-9d1e-3a2b1c0d9e8f'
const KEY = newApiKey()
const ALL = { references: true, dpop: true }
const read = (header: string | undefined, forms = ALL) =>
  outcome(() => readCredential(header, forms))

describe('the grammar of credentials', () => {
  it('accepts a JWT, a UUID of version 4 and an API key, each with either scheme in any case [S28]', () => {
    for (const [text, kind] of [
      [JWT, 'jwt'],
      [UUID, 'opaque'],
      [KEY, 'api_key'],
    ] as const) {
      for (const name of ['Bearer', 'bearer', 'BEARER'])
        expect(readCredential(`${name} ${text}`, ALL)).toEqual({ scheme: 'bearer', kind, text })
      for (const name of ['DPoP', 'dpop', 'DPOP'])
        expect(readCredential(`${name}  ${text}`, ALL)).toEqual({ scheme: 'dpop', kind, text })
    }
  })

  it('treats an unsupported scheme as a missing token, and DPoP as well if proofs are not checked [S29]', async () => {
    for (const header of [undefined, 'Basic YTpi', `Token ${UUID}`, 'Digest', `Bearerx ${JWT}`])
      expect(await read(header), header).toBe('missing_token')
    const forms = { references: true, dpop: false }
    expect(await read(`DPoP ${JWT}`, forms)).toBe('missing_token')
    expect(await read(`Bearer ${JWT}`, forms)).toBe('ok')
  })

  it('refuses references as malformed tokens if references are not accepted', async () => {
    const forms = { references: false, dpop: true }
    expect(await read(`Bearer ${UUID}`, forms)).toBe('token_rejected:segments')
    expect(await read(`Bearer ${KEY}`, forms)).toBe('token_rejected:segments')
  })

  it('accepts one spelling of a UUID: lower case, hyphens, version 4, variant 10 [S19]', async () => {
    for (const text of [
      UUID.toUpperCase(),
      UUID.replaceAll('-', ''),
      `{${UUID}}`,
      `urn:uuid:${UUID}`,
      UUID.replace('-4c52', '-1c52'),
      UUID.replace('-4c52', '-7c52'),
      UUID.replace('-9d1e', '-1d1e'),
      UUID.replace('-9d1e', '-cd1e'),
      `${UUID}0`,
      UUID.slice(1),
      UUID.replace('0b1f', '0b1g'),
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
    ])
      expect(await read(`Bearer ${text}`), text).toBe('token_rejected:segments')
  })

  it('refuses lists, several credentials, tabs and unusual spaces for every kind [S28]', async () => {
    for (const text of [JWT, UUID, KEY]) {
      for (const header of [
        `Bearer ${text} ${text}`,
        `Bearer ${text} `,
        `Bearer ${text}\n`,
        `Bearer\t${text}`,
        `Bearer \u00a0${text}`,
        `Bearer "${text}"`,
        `Bearer ${text},`,
        `Bearer ${text}=`,
        ` Bearer ${text}`,
      ])
        expect(await read(header), JSON.stringify(header)).toMatch(/^token_rejected:/)
    }
    for (const header of ['Bearer', 'Bearer ', 'DPoP', 'DPoP   '])
      expect(await read(header)).toBe('token_rejected:empty')
  })

  it('reports several credentials as ambiguous, whatever their schemes are [S28]', async () => {
    const digest = 'Digest username="a", realm="b, c d", uri="/x", nc=00000001'
    for (const text of [JWT, UUID, KEY]) {
      const bearer = `Bearer ${text}`
      for (const [one, other] of [
        [bearer, bearer],
        [bearer, `DPoP ${text}`],
        [`DPoP ${text}`, `DPoP ${text}`],
        [bearer, 'Basic dXNlcjpwYXNzd29yZA=='],
        [bearer, digest],
        [bearer, 'Negotiate'],
      ]) {
        expect(await read(`${one}, ${other}`)).toBe('ambiguous_credentials')
        expect(await read(`${other},${one}`)).toBe('ambiguous_credentials')
      }
    }
    // Commas also separate the parameters of one credential.
    for (const header of [
      digest,
      'Basic a',
      'AWS4-HMAC-SHA256 Credential=a/b, Signature=c',
      'X a = b, c=d',
    ])
      expect(await read(header), header).toBe('missing_token')
  })

  it('refuses a list in which a quotation mark hides where a credential ends', async () => {
    for (const header of [
      'Bearer a, x="b, Basic c',
      `Bearer ${JWT}, x="b, Basic c`,
      'Digest username="a, Basic c',
      'Digest username="a\\", Basic c',
      'Digest username="a"b", realm="c, Basic d"',
    ])
      expect(await read(header), header).toBe('malformed_request')
  })

  it('ends no list at a quotation mark that encloses no value of a parameter', async () => {
    for (const header of ['Bearer a"b, Basic c"', 'Basic a", Basic c', 'Basic "a, Basic c"'])
      expect(await read(header), header).toBe('ambiguous_credentials')
  })

  it('finds the number of credentials in every field of well-formed ones, and no cut field passes', async () => {
    const word = fc.stringMatching(/^[A-Za-z][\w-]{0,8}$/)
    const quoted = fc
      .array(fc.oneof(fc.constantFrom(',', ' ', '\\"', '\\\\', '=', 'Basic b'), word))
      .map((parts) => `"${parts.join('')}"`)
    const parameter = fc
      .tuple(word, fc.constantFrom('=', ' = '), fc.oneof(word, quoted))
      .map((parts) => parts.join(''))
    const credential = fc.tuple(
      word,
      fc.oneof(
        word,
        fc.array(parameter, { minLength: 1, maxLength: 4 }).map((all) => all.join(', ')),
      ),
    )
    const field = fc.array(credential, { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(field, fc.nat(), async (credentials, at) => {
        const header = credentials.map((parts) => parts.join(' ')).join(', ')
        const ambiguous = credentials.length > 1
        expect((await read(header)) === 'ambiguous_credentials', header).toBe(ambiguous)
        const cut = header.slice(0, at % header.length)
        if ((cut.replaceAll(/\\./g, '').split('"').length - 1) % 2 === 0 || !cut.includes(','))
          return
        expect(await read(cut), cut).toBe('malformed_request')
      }),
    )
  })

  it('refuses an API key with a wrong checksum by its form', async () => {
    const mistyped = KEY.slice(0, -1) + (KEY.endsWith('0') ? '1' : '0')
    expect(await read(`Bearer ${mistyped}`)).toBe('token_rejected:api_key_checksum')
    expect(await outcome(() => classifyToken(mistyped, ALL))).toBe(
      'token_rejected:api_key_checksum',
    )
  })

  it('checks the length of a header before any pattern [S21]', async () => {
    const long = `${'a'.repeat(DEFAULT_MAX_TOKEN_BYTES)}.a.a`
    expect(await read(`Bearer ${long}`)).toBe('token_rejected:length')
    expect(await read(`DPoP ${' '.repeat(DEFAULT_MAX_TOKEN_BYTES)}${UUID}`)).toBe(
      'token_rejected:length',
    )
  })
})

describe('the text of a bearer header', () => {
  it('is the part after the scheme, up to the longest token', () => {
    const longest = 'a'.repeat(DEFAULT_MAX_TOKEN_BYTES)
    for (const text of [JWT, UUID, KEY, longest, ''])
      expect(bearerText(`Bearer ${text}`)).toBe(text)
    expect(bearerText(`Bearer ${longest}a`)).toBeUndefined()
  })

  it('is undefined for a header that does not begin with the usual spelling of the scheme', () => {
    for (const header of ['', 'Bearer', `bearer ${JWT}`, `DPoP ${JWT}`, `${JWT} Bearer `, JWT])
      expect(bearerText(header), header).toBeUndefined()
  })
})

describe('a token and a proof of possession', () => {
  it('match only if both name the same key, or neither exists', () => {
    const [one, other] = ['a'.repeat(43), 'b'.repeat(43)]
    expect(checkBinding(undefined, undefined)).toBeUndefined()
    expect(checkBinding(one, one)).toBeUndefined()
    expect(checkBinding(one, undefined)).toBe('dpop_binding')
    expect(checkBinding(undefined, one)).toBe('dpop_binding')
    expect(checkBinding(one, other)).toBe('dpop_binding')
  })
})
