/** Cases about tokens and key sets, as providers send them. */
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import { expect } from 'vitest'
import { AUDIENCE } from '../harness/issuer.ts'
import type { FieldCase } from './case.ts'
import type { FieldGateway } from './gateway.ts'
import { EVERY_RUNTIME, type RuntimeName } from './runtimes.ts'

interface Pair {
  readonly alg: string
  readonly publicJwk: JWK
  readonly privateJwk: JWK
}

async function pairOf(alg: string, members: JWK): Promise<Pair> {
  const pair = await generateKeyPair(alg, { extractable: true })
  return {
    alg,
    publicJwk: { ...(await exportJWK(pair.publicKey)), ...members },
    privateJwk: await exportJWK(pair.privateKey),
  }
}

/** Members of a token in place of the usual ones. */
interface Changes {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
}

async function tokenOf(
  issuer: string,
  { alg, privateJwk }: Pair,
  { claims, header }: Changes = {},
) {
  const now = Math.floor(Date.now() / 1000)
  const payload = {
    iss: issuer,
    aud: AUDIENCE,
    sub: 'alice',
    client_id: 'app',
    iat: now,
    exp: now + 600,
    jti: crypto.randomUUID(),
    roles: ['reader'],
    ...claims,
  }
  return new SignJWT(payload)
    .setProtectedHeader({ alg, typ: 'at+jwt', ...header })
    .sign(await importJWK(privateJwk, alg))
}

const statusOf = async ({ fetch }: FieldGateway, token: string): Promise<number> =>
  (await fetch('/notes', { headers: { authorization: `Bearer ${token}` } })).status

let issuers = 0

/** A case in which an issuer has certain keys and signs certain tokens, which all get `status`. */
interface TokenCase {
  readonly symptom: string
  readonly sources: readonly string[]
  readonly expected: string
  readonly keys: readonly JWK[]
  readonly before?: string
  readonly settings?: object
  readonly signed: readonly (readonly [key: Pair, changes?: Changes])[]
  readonly status?: number
  readonly runtimes?: readonly RuntimeName[]
}

function tokenCase({
  symptom,
  sources,
  expected,
  keys,
  settings = {},
  signed,
  ...rest
}: TokenCase): FieldCase {
  const { status = 200, runtimes = EVERY_RUNTIME, before = '' } = rest
  issuers += 1
  const issuer = `https://issuer-${issuers}.field.test`
  return {
    symptom,
    sources,
    expected,
    runtimes,
    proof: {
      issuers: [{ issuer, keys, before, settings }],
      async run(gateway) {
        const statuses: number[] = []
        for (const [pair, changes] of signed)
          statuses.push(await statusOf(gateway, await tokenOf(issuer, pair, changes)))
        expect(statuses).toEqual(signed.map(() => status))
        expect(gateway.reached).toHaveLength(status === 200 ? signed.length : 0)
      },
    },
  }
}

const kid = 'k1'
const ec = await pairOf('ES256', { kid, alg: 'ES256', use: 'sig' })
const otherEc = await pairOf('ES256', { kid, alg: 'ES256', use: 'sig' })
const rsa = await pairOf('RS256', { kid, alg: 'RS256', use: 'sig' })
const pss: Pair = { ...rsa, alg: 'PS256', publicJwk: { ...rsa.publicJwk, alg: 'PS256' } }
const okp = await pairOf('Ed25519', { kid, use: 'sig' })
/** As serializers of .NET and Java write keys. */
const nullMembers = { alg: null, key_ops: null, d: null, k: null, oth: null, exp: null, x5c: null }
const withKid: Changes = { header: { kid } }

/** Tokens that differ from a valid one in these claims. */
const each = (claims: readonly object[]): (readonly [Pair, Changes])[] =>
  claims.map((changed) => [ec, { ...withKid, claims: { ...changed } }])

const without = (jwk: JWK, ...names: string[]): JWK =>
  Object.fromEntries(Object.entries(jwk).filter(([name]) => !names.includes(name)))

export const tokenCases: readonly FieldCase[] = [
  tokenCase({
    symptom: 'one key that is published for two algorithms under one kid is ignored',
    sources: ['keycloak/keycloak#14794', 'keycloak/keycloak#15114', 'jpadilla/pyjwt#1139'],
    expected: 'kid, alg and key type together select a key (RFC 7517 section 4.5)',
    keys: [rsa.publicJwk, pss.publicJwk],
    signed: [
      [rsa, withKid],
      [pss, withKid],
    ],
  }),
  tokenCase({
    symptom: 'one key of an unknown type makes all keys of a set useless',
    sources: ['PrefectHQ/fastmcp#4515', 'jwt/ruby-jwt#743', 'vapor/jwt-kit#246'],
    expected: 'keys that are not understood are ignored (RFC 7517 section 5)',
    keys: [
      { kty: 'AKP', kid: 'pq', alg: 'ML-DSA-65', pub: 'AAAA' },
      { kty: 'OKP', crv: 'X25519', kid: 'x', use: 'enc', x: okp.publicJwk.x ?? '' },
      { kty: 'odd' },
      ec.publicJwk,
    ],
    signed: [[ec, withKid]],
  }),
  tokenCase({
    symptom: 'a key set in a file with a byte order mark cannot be read',
    sources: ['own'],
    expected: 'the mark is ignored, as RFC 8259 section 8.1 permits and other readers do',
    keys: [ec.publicJwk],
    before: '\ufeff',
    signed: [[ec, withKid]],
  }),
  tokenCase({
    symptom: 'an EC key and an RSA key under one kid are both ignored',
    sources: ['keycloak/keycloak#14794'],
    expected: 'kid, alg and key type together select a key (RFC 7517 section 4.5)',
    keys: [rsa.publicJwk, ec.publicJwk],
    signed: [
      [rsa, withKid],
      [ec, withKid],
    ],
  }),
  tokenCase({
    symptom: 'a key that a key set lists twice is ignored',
    sources: ['keycloak/keycloak#15114'],
    expected: 'the same key twice is one key',
    keys: [ec.publicJwk, ec.publicJwk],
    signed: [[ec, withKid]],
  }),
  tokenCase({
    symptom: 'one of two different keys with the same kid and algorithm is used by chance',
    sources: ['own'],
    expected: 'keys that cannot be distinguished are refused',
    keys: [ec.publicJwk, otherEc.publicJwk, { ...rsa.publicJwk, kid: 'another' }],
    signed: [
      [ec, withKid],
      [otherEc, withKid],
    ],
    status: 401,
  }),
  tokenCase({
    symptom: 'tokens whose scope has two spaces, or one at an end, are refused',
    sources: ['auth0/auth0-spring-security-api#35', 'apache/kafka#22298'],
    expected: 'empty parts of a scope are ignored',
    keys: [ec.publicJwk],
    signed: each(
      ['notes:read  notes:write', 'notes:read ', ' notes:read', '  notes:read   '].map((scope) => ({
        scope,
      })),
    ),
  }),
  tokenCase({
    symptom: 'tokens with claims that are null are refused',
    sources: ['wundergraph/cosmo#3251'],
    expected: 'null and empty mean absent, except for required claims',
    keys: [ec.publicJwk],
    signed: each([
      { client_id: null, azp: 'app' },
      { client_id: '' },
      { tenant: null },
      { tenant: '' },
      { sid: null },
      { scope: null },
      { nbf: null },
      { jti: null },
      { cnf: null },
      { roles: ['', 'reader'] },
      { roles: ['reader', null] },
    ]),
  }),
  tokenCase({
    symptom: 'a required claim that is null counts as present',
    sources: ['own'],
    expected: 'exp, iss, aud and sub are required',
    keys: [ec.publicJwk],
    signed: each([
      { exp: null },
      { aud: null },
      { sub: null },
      { sub: '' },
      { aud: [] },
      { aud: '' },
    ]),
    status: 401,
  }),
  tokenCase({
    symptom: 'an empty or unknown confirmation method counts as none',
    sources: ['own'],
    expected: 'a token that is bound to something unknown is refused (RFC 7800 section 3.1)',
    keys: [ec.publicJwk],
    signed: each([{ cnf: {} }, { cnf: { unknown: 'x' } }, { cnf: '' }, { cnf: [] }]),
    status: 401,
  }),
  tokenCase({
    symptom: 'tokens of users in 150 or 200 groups are refused as too long',
    sources: [
      'Azure/azure-managed-grafana#62',
      'argoproj/argo-workflows#11277',
      'Azure/azure-sdk-for-net#39422',
    ],
    expected: 'tokens of up to 16,384 bytes are accepted',
    keys: [ec.publicJwk],
    signed: each(
      [150, 200].map((count) => ({
        groups: Array.from({ length: count }, () => crypto.randomUUID()),
      })),
    ),
  }),
  tokenCase({
    symptom: 'keys without alg in the key set verify nothing',
    sources: [
      'opentdf/platform#3434',
      'apollographql/router#2540',
      'oidc-wp/openid-connect-generic#647',
    ],
    expected: 'alg is optional in a key (RFC 7517 section 4.4)',
    keys: [without(rsa.publicJwk, 'alg'), { ...without(ec.publicJwk, 'alg'), kid: 'e' }],
    signed: [
      [rsa, withKid],
      [ec, { header: { kid: 'e' } }],
    ],
  }),
  tokenCase({
    symptom: 'keys whose absent members are written as null verify nothing',
    sources: ['own'],
    expected: 'null means absent, as in tokens',
    keys: [
      { ...without(rsa.publicJwk, 'alg'), kid: 'r', ...nullMembers },
      { ...without(ec.publicJwk, 'alg', 'use'), kid: 'e', ...nullMembers },
      { ...without(okp.publicJwk, 'alg', 'use', 'kid'), ...nullMembers, kid: null },
    ] as unknown as readonly JWK[],
    settings: { algorithms: ['RS256', 'ES256', 'Ed25519'] },
    signed: [
      [rsa, { header: { kid: 'r' } }],
      [ec, { header: { kid: 'e' } }],
      [okp, { header: { kid: null } }],
      [okp],
    ],
  }),
  tokenCase({
    symptom: 'one of several keys without kid is tried by chance',
    sources: ['GluuFederation/oxd#555'],
    expected: 'keys that cannot be distinguished are refused',
    keys: [without(ec.publicJwk, 'kid'), without(otherEc.publicJwk, 'kid')],
    signed: [[ec], [otherEc]],
    status: 401,
  }),
  tokenCase({
    symptom: 'scopes as an array, or in a claim scp, are not read',
    sources: [
      'envoyproxy/gateway#8027',
      'wso2/product-microgateway#3057',
      'ThreeMammals/Ocelot#913',
    ],
    expected: 'scopes are text or an array, in the claim that the issuer uses',
    keys: [ec.publicJwk],
    settings: { scopes: 'grant', scopeClaim: [['scope'], ['scp']] },
    signed: each(
      [
        { scope: 'notes:read' },
        { scope: ['notes:read'] },
        { scp: 'notes:read' },
        { scp: ['notes:read', 'x'] },
      ].map((claims) => ({ ...claims, roles: undefined })),
    ),
  }),
  tokenCase({
    symptom: 'an audience that is an array is refused, or an array in an array is accepted',
    sources: ['auth0/node-jsonwebtoken#33', 'clerk/javascript#8470', 'cfworker/cfworker#141'],
    expected: 'aud is text or an array of text that contains the audience (RFC 7519 section 4.1.3)',
    keys: [ec.publicJwk],
    signed: each([{ aud: [AUDIENCE] }, { aud: ['https://other.test', AUDIENCE] }]),
  }),
  tokenCase({
    symptom: 'a token for another audience is accepted',
    sources: ['mastra-ai/mastra#9736'],
    expected: 'the audience is compared, always and exactly',
    keys: [ec.publicJwk],
    signed: each([
      { aud: 'https://other.test' },
      { aud: [[AUDIENCE]] },
      { aud: `${AUDIENCE}/` },
      { aud: AUDIENCE.toUpperCase() },
      { aud: { 0: AUDIENCE } },
      { aud: undefined },
    ]),
    status: 401,
  }),
  tokenCase({
    symptom: 'a token without kid is refused although the issuer has one key',
    sources: ['smallrye/smallrye-jwt#140'],
    expected: 'the only possible key is used',
    keys: [ec.publicJwk],
    signed: [[ec]],
  }),
  tokenCase({
    symptom: 'a token with an unknown kid is verified with the only key that is cached',
    sources: ['OpenLiberty/open-liberty#9588'],
    expected: 'a key with another kid is not used (RFC 7515 section 4.1.4)',
    keys: [ec.publicJwk],
    signed: [[ec, { header: { kid: 'another' } }]],
    status: 401,
  }),
  {
    symptom: 'any scheme of Authorization is read as Bearer',
    sources: ['honojs/hono#4704'],
    expected: 'a token of an unsupported scheme is no credential (RFC 9110 section 11.4)',
    runtimes: EVERY_RUNTIME,
    proof: {
      async run({ fetch, token, reached }) {
        const value = await token()
        for (const scheme of ['Basic', 'Digest', 'Token', 'JWT', 'Bearer:', 'X-Bearer']) {
          const headers = { authorization: `${scheme} ${value}` }
          expect([scheme, (await fetch('/notes', { headers })).status]).toEqual([scheme, 401])
        }
        expect(reached).toHaveLength(0)
        const lower = await fetch('/notes', { headers: { authorization: `bearer ${value}` } })
        expect(lower.status).toBe(200)
      },
    },
  },
  {
    symptom: 'the challenge of a refusal contains the secret, the token or the name of a key',
    sources: ['honojs/hono#291'],
    expected: 'a challenge names the realm, the error and the metadata (RFC 6750 section 3)',
    runtimes: EVERY_RUNTIME,
    proof: {
      async run({ fetch, token, key }) {
        const value = await token({ claims: { aud: 'https://other.test' } })
        const response = await fetch('/notes', { headers: { authorization: `Bearer ${value}` } })
        expect(response.status).toBe(401)
        const text = [...response.headers].join('\n') + (await response.text())
        for (const secret of [value, value.split('.')[2] ?? '', key.kid])
          expect(text).not.toContain(secret)
      },
    },
  },
  {
    symptom: 'tokens are refused for good after the keys of the issuer have changed',
    sources: ['envoyproxy/envoy#39643', 'istio/istio#10547', 'supabase/server#165'],
    expected:
      'an unknown kid leads to one download for each cool-down (OpenID Connect Core section 10.1.1)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/access/tokens/key-rotation.test.ts > a new key works one cool-down after its publication',
        'test/access/tokens/remote-key-set.slow.test.ts > a thousand unknown kids, a hundred at a time, make one fetch per cool-down',
      ],
    },
  },
  {
    symptom: 'while the key set cannot be downloaded, valid tokens are refused as invalid',
    sources: ['envoyproxy/envoy#13705', 'envoyproxy/envoy#14557'],
    expected: 'an outage is 503, and known keys serve meanwhile',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/access/tokens/remote-key-set.slow.test.ts > while the provider fails, known keys serve for a day, and an unknown key is an outage',
      ],
    },
  },
  {
    symptom: 'access_token in a query names the caller, alone or beside a token in a header',
    sources: ['own'],
    expected: 'a query is no source of tokens (RFC 9700 section 4.3.2): a parameter as any other',
    runtimes: EVERY_RUNTIME,
    proof: {
      async run({ fetch, token, reached }) {
        const reader = await token({ claims: { roles: ['reader'] } })
        const writer = await token()
        expect((await fetch(`/notes?access_token=${writer}`)).status).toBe(401)
        const write = await fetch(`/notes?access_token=${writer}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${reader}` },
        })
        expect(write.status).toBe(403)
        expect(reached).toEqual([])
        const read = await fetch('/notes?access_token=odd', {
          headers: { authorization: `Bearer ${reader}` },
        })
        expect(read.status).toBe(200)
      },
    },
  },
]
