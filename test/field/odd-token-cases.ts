/** Cases about signed tokens in unusual forms: the issuer's key signed each, unless the case says otherwise. */
import { createPrivateKey, sign } from 'node:crypto'
import { expect } from 'vitest'
import { createKey, type TestKey } from '../harness/issuer.ts'
import type { FieldCase } from './case.ts'
import type { FieldGateway } from './gateway.ts'
import { EVERY_RUNTIME } from './runtimes.ts'

type Members = Readonly<Record<string, unknown>>

/** What a token of the issuer consists of. */
interface Parts {
  readonly header: Members
  readonly claims: Members
  readonly key: TestKey
}

/** Texts that replace those of a token: of its header, and of its claims. */
interface Texts {
  readonly header?: string | Buffer
  readonly claims?: string | Buffer
  readonly key?: TestKey
}

const base64url = (text: string | Buffer) => Buffer.from(text).toString('base64url')

function signed(parts: Parts, texts: Texts): string {
  const { header = JSON.stringify(parts.header), claims = JSON.stringify(parts.claims) } = texts
  const { privateJwk } = texts.key ?? parts.key
  const input = `${base64url(header)}.${base64url(claims)}`
  const key = createPrivateKey({ key: { ...privateJwk }, format: 'jwk' })
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

const partsOf = (token: string, key: TestKey): Parts => {
  const [header = '', claims = ''] = token.split('.')
  const read = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Members
  return { header: read(header), claims: read(claims), key }
}

/** Writes members in front of those of an object. */
const before = (members: Members, text: string) => JSON.stringify(members).replace('{', `{${text},`)

/** Replaces the value of a member by a JSON text. */
function withText(members: Members, name: string, text: string): string {
  const others = Object.fromEntries(Object.entries(members).filter(([key]) => key !== name))
  return before(others, `"${name}":${text}`)
}

/** Returns tokens by the name of their form. */
type Forms = (parts: Parts) => Readonly<Record<string, Texts>>

const formCase = (
  symptom: string,
  expected: string,
  status: 200 | 401 | 403,
  forms: Forms,
): FieldCase => ({
  symptom,
  sources: ['own'],
  expected,
  runtimes: EVERY_RUNTIME,
  proof: {
    async run({ fetch, token, key, reached }: FieldGateway) {
      const parts = partsOf(await token(), key)
      const found: [string, number][] = []
      // The first form is the token itself: the other forms differ from it in one part only.
      for (const [name, texts] of [['itself', {}] as const, ...Object.entries(forms(parts))]) {
        const authorization = `Bearer ${signed(parts, texts)}`
        found.push([name, (await fetch('/notes', { headers: { authorization } })).status])
      }
      expect(found).toEqual(found.map(([name], at) => [name, at === 0 ? 200 : status]))
      expect(reached).toHaveLength(status === 200 ? found.length : 1)
    },
  },
})

const headersOf = (members: Members, changes: Readonly<Record<string, Members>>) =>
  Object.fromEntries(
    Object.entries(changes).map(([name, change]) => [
      name,
      { header: JSON.stringify({ ...members, ...change }) },
    ]),
  )

const timesOf = (members: Members, texts: readonly (readonly [string, string])[]) =>
  Object.fromEntries(
    texts.map(([name, text]) => [`${name} ${text}`, { claims: withText(members, name, text) }]),
  )

const each = (name: string, texts: readonly string[]) => texts.map((text) => [name, text] as const)
const NO_NUMBERS = [
  '"1"',
  'true',
  '[1]',
  '{}',
  '1e400',
  '-1',
  '-1e400',
  '1e18',
  '99999999999999999999',
]
const foreign = await createKey('field')

export const oddTokenCases: readonly FieldCase[] = [
  formCase(
    'a token with critical or unencoded extensions is accepted',
    'extensions that are not understood, and an empty or misplaced crit, are refused (RFC 7515 section 4.1.11, RFC 7797)',
    401,
    ({ header }) =>
      headersOf(header, {
        unknown: { crit: ['x'], x: 1 },
        empty: { crit: [] },
        null: { crit: null },
        text: { crit: 'exp' },
        registered: { crit: ['alg'] },
        b64: { crit: ['b64'], b64: true },
        unencoded: { crit: ['b64'], b64: false },
        'b64 alone': { b64: false },
      }),
  ),
  formCase(
    'a token chooses another algorithm than its key has',
    'alg is the exact name of the algorithm of the key (RFC 8725 sections 3.1 and 3.2)',
    401,
    ({ header }) =>
      headersOf(header, {
        none: { alg: 'none' },
        None: { alg: 'None' },
        empty: { alg: '' },
        absent: { alg: undefined },
        null: { alg: null },
        list: { alg: ['ES256'] },
        lower: { alg: 'es256' },
        space: { alg: 'ES256 ' },
        symmetric: { alg: 'HS256' },
        'another curve': { alg: 'ES384' },
      }),
  ),
  formCase(
    'a key in the header of a token verifies it',
    'keys and places of keys in a header are not used (RFC 8725 section 3.10)',
    401,
    ({ header }) =>
      Object.fromEntries(
        Object.entries(
          headersOf(header, {
            jwk: { jwk: foreign.publicJwk },
            'jwk without kid': { jwk: foreign.publicJwk, kid: undefined },
            jku: { jku: 'http://127.0.0.1:1/keys' },
            x5u: { x5u: 'http://127.0.0.1:1/chain' },
            x5c: { x5c: ['AAAA'] },
          }),
        ).map(([name, texts]) => [name, { ...texts, key: foreign }]),
      ),
  ),
  formCase(
    'a header parameter without effect on signed tokens makes a token invalid',
    'parameters that are not understood and not critical are ignored (RFC 7515 section 4)',
    200,
    ({ header, key }) =>
      headersOf(header, {
        zip: { zip: 'DEF' },
        'no zip': { zip: 'NONE' },
        cty: { cty: 'json' },
        jwk: { jwk: key.publicJwk },
        x5t: { x5t: 'AAAA' },
        unknown: { x: { y: [1] } },
      }),
  ),
  formCase(
    'of two members with one name, one part of a system reads the first and another the last',
    'a token with duplicate names is refused, at any depth and however they are escaped (RFC 7515 section 4, RFC 7519 section 4)',
    401,
    ({ header, claims }) => ({
      alg: { header: before(header, '"alg":"none"') },
      kid: { header: before(header, '"kid":"other"') },
      'escaped kid': { header: before(header, '"k\\u0069d":"field"') },
      sub: { claims: before(claims, '"sub":"victim"') },
      'the same sub': { claims: before(claims, `"sub":${JSON.stringify(claims.sub)}`) },
      exp: { claims: before(claims, '"exp":1') },
      'escaped exp': { claims: before(claims, '"\\u0065xp":1') },
      nested: { claims: before(claims, '"o":[{"a":1,"a":2}]') },
    }),
  ),
  formCase(
    'a time that is no number, or no date, never ends a token',
    'exp, nbf and iat are numbers of seconds in years that exist (RFC 7519 section 2)',
    401,
    ({ claims }) =>
      timesOf(claims, [
        ...each('exp', [...NO_NUMBERS, 'null', '0', '1e-400']),
        ...each('nbf', [...NO_NUMBERS, '99999999999']),
        ...each('iat', [...NO_NUMBERS, 'null', '99999999999']),
      ]),
  ),
  formCase(
    'a time with a fraction or an exponent makes a token invalid',
    'a NumericDate is any JSON number (RFC 7519 section 2)',
    200,
    ({ claims }) =>
      timesOf(claims, [
        ['exp', `${claims.exp}.5`],
        ['exp', `${claims.exp}0e-1`],
        ['iat', `${claims.iat}.0`],
        ['nbf', '1.5'],
        ['nbf', '-0'],
        ['nbf', '1E3'],
      ]),
  ),
  formCase(
    'a token whose text is not JSON in UTF-8 is repaired and accepted',
    'header and claims are UTF-8 without a byte order mark, and one JSON object (RFC 7515 section 5.2, RFC 8259 section 8.1)',
    401,
    ({ header, claims }) => {
      const text = JSON.stringify(claims)
      const bytes = (...values: number[]) =>
        Buffer.concat([
          Buffer.from(`${text.slice(0, -1)},"x":"`),
          Buffer.from(values),
          Buffer.from('"}'),
        ])
      return {
        'a byte of no character': { claims: bytes(0xff) },
        'a long form': { claims: bytes(0xc0, 0xaf) },
        'an encoded surrogate': { claims: bytes(0xed, 0xa0, 0x80) },
        'a cut character': { claims: bytes(0xe2, 0x82) },
        'a control character': { claims: bytes(0x0a) },
        'UTF-16': { claims: Buffer.from(text, 'utf16le') },
        'byte order mark': { claims: `\ufeff${text}` },
        'byte order mark in the header': { header: `\ufeff${JSON.stringify(header)}` },
        'text after it': { claims: `${text} x` },
        'two objects': { claims: text + text },
        list: { claims: `[${text}]` },
        'text in text': { claims: JSON.stringify(text) },
        'deep nesting': { claims: before(claims, `"x":${'['.repeat(3000)}${']'.repeat(3000)}`) },
        comment: { claims: `/**/${text}` },
        'last comma': { claims: text.replace(/}$/, ',}') },
        empty: { claims: '' },
        null: { claims: 'null' },
      }
    },
  ),
  formCase(
    'a subject with characters that end a line or a text reaches the origin or the log',
    'a subject is well-formed text without control characters and ends of lines, and is not blank',
    401,
    ({ claims }) =>
      timesOf(
        claims,
        each('sub', [
          '"a\\u0000b"',
          '"a\\r\\nx: y"',
          '"a\\u0085b"',
          '"a\\u2028b"',
          '"a\\ud800b"',
          '"\\udc00\\ud800"',
          '" "',
          '""',
          '1',
          'true',
          '["a"]',
          '{"a":1}',
          'null',
        ]),
      ),
  ),
  formCase(
    'members with names of the language add roles to a token',
    'names such as __proto__ are members without effect',
    403,
    ({ claims }) => {
      const { roles: _, ...others } = claims
      return {
        __proto__: { claims: before(others, '"__proto__":{"roles":["writer"]}') },
        constructor: {
          claims: before(others, '"constructor":{"prototype":{"roles":["writer"]}}'),
        },
        'role __proto__': { claims: withText(claims, 'roles', '["__proto__"]') },
        'role constructor': { claims: withText(claims, 'roles', '["constructor"]') },
        'role toString': { claims: withText(claims, 'roles', '"toString"') },
      }
    },
  ),
  {
    symptom: 'several texts are one valid token, so that a ban of one does not ban the others',
    sources: ['own'],
    expected:
      'three parts of canonical base64url (RFC 7515 sections 2 and 7.1, RFC 4648 section 3.5)',
    runtimes: EVERY_RUNTIME,
    proof: {
      async run({ fetch, token, reached }) {
        const good = await token()
        const [header = '', claims = '', signature = ''] = good.split('.')
        const bytes = Buffer.from(signature, 'base64url').toString('latin1')
        const same = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
          .map((last) => signature.slice(0, -1) + last)
          .filter((text) => Buffer.from(text, 'base64url').toString('latin1') === bytes)
          .filter((text) => text !== signature)
        expect(same.length).toBeGreaterThan(0)
        const texts = [
          ...same.map((text) => `${header}.${claims}.${text}`),
          `${good}=`,
          `${good}==`,
          `${header}=.${claims}.${signature}`,
          `${good}.`,
          `.${good}`,
          `${good}.a.b`,
          `${header}..${signature}`,
          `${header}.${claims}.`,
          `${header}.${claims}`,
          `${header}.${claims}.${signature}A`,
          `${header}.${claims}.${signature.slice(0, 40)} ${signature.slice(40)}`,
          `"${good}"`,
        ]
        for (const text of texts) {
          const { status } = await fetch('/notes', { headers: { authorization: `Bearer ${text}` } })
          expect([text, status]).toEqual([text, 401])
        }
        expect(reached).toHaveLength(0)
      },
    },
  },
]
