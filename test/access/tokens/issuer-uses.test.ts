/** S83: every way in applies every rule of an issuer, except rules about the kind of the token. */
import { beforeAll, describe, expect, test } from 'vitest'
import { issuerRules } from '../../../src/access/tokens/issuer-rules.ts'
import { issuerFor } from '../../../src/access/tokens/issuer-uses.ts'
import { createInlineKeySet } from '../../../src/access/tokens/key-set.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { Denied } from '../../../src/errors.ts'
import { createIssuerCall } from '../../../src/features/introspection/issuer-call.ts'
import { createIdTokenVerifier } from '../../../src/features/sign-in/id-token.ts'
import { createBreakers } from '../../../src/isolate/breakers.ts'
import { type IssuerConfig, issuers } from '../../../src/validators/issuer.ts'
import { createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'

const GATEWAY = 'https://gateway.test'
const API = 'orders'
const CLIENT = 'web'

let key: TestKey
beforeAll(async () => {
  key = await createKey('idp')
})

const now = () => Date.now()
const configOf = (rules: object): IssuerConfig => {
  const [config] = issuers.parse([
    {
      issuer: ISSUER,
      audience: API,
      jwks: { keys: [key.publicJwk] },
      idTokenAlgorithm: 'ES256',
      ...rules,
    },
  ])
  if (config === undefined) throw new Error('no issuer')
  return config
}
const keySetFor = ({ jwks, algorithms }: IssuerConfig) =>
  createInlineKeySet(jwks ?? { keys: [] }, algorithms, now)

/** Each way in: resolves for accepted claims, and rejects with `Denied` for others. */
const DOORS: Readonly<Record<string, (config: IssuerConfig, claims: object) => Promise<unknown>>> =
  {
    'an access token': async (config, claims) =>
      createTokenVerifier({ issuers: [config], now }).verify(
        await mint(key, { claims: { aud: API, ...claims } }),
      ),
    introspection: async (config, claims) =>
      callFor(config, undefined)({ iss: ISSUER, aud: API, ...claims }),
    UserInfo: async (config, claims) => callFor(config, [API])(claims),
    'an ID token': async (config, claims) =>
      createIdTokenVerifier({
        config,
        keySet: keySetFor(config),
        settings: { name: 'test', scope: 'openid' } as never,
        client: CLIENT,
        now,
      })(await mint(key, { header: { typ: 'JWT' }, claims: { aud: CLIENT, ...claims } })),
    'an identity assertion': async (config, claims) => {
      const assertions = issuerFor(config, { use: 'assertion', audience: GATEWAY })
      return createTokenVerifier({ issuers: [assertions], now }).verify(
        await mint(key, {
          header: { typ: 'oauth-id-jag+jwt' },
          claims: { aud: GATEWAY, ...claims },
        }),
      )
    },
  }

function callFor(config: IssuerConfig, audience: readonly string[] | undefined) {
  return async (claims: object) => {
    const times = { iat: Math.floor(now() / 1000), exp: Math.floor(now() / 1000) + 600 }
    return createIssuerCall({
      rules: issuerRules(config),
      locator: { locate: async () => 'https://issuer.test/introspect' },
      request: async () => ({ sub: 'alice', client_id: 'test-app', ...times, ...claims }),
      maxAgeSeconds: 10,
      audience,
      watch: createBreakers({ now }).watch,
      now,
    })('token')
  }
}

/** The check that refuses the claims. Undefined: they are accepted. */
async function checkOf(door: string, config: IssuerConfig, claims: object) {
  try {
    await DOORS[door]?.(config, claims)
    return undefined
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    const { denial } = error
    return 'check' in denial ? String(denial.check).replace('id_token_', '') : denial.code
  }
}

/** A rule, claims that meet it, claims that do not, and the check. */
const RULES: readonly (readonly [object, object, object, string])[] = [
  [{ require: { department: 'sales' } }, { department: 'sales' }, {}, 'required_claim'],
  [
    { require: { email_verified: true } },
    { email_verified: true },
    { email_verified: false },
    'required_claim',
  ],
  [
    { require: { 'org.id': ['a', 'b'] } },
    { org: { id: 'b' } },
    { org: { id: 'c' } },
    'required_claim',
  ],
  [{ require: { impersonator: null } }, {}, { impersonator: 'x' }, 'required_claim'],
  [{ refuse: ['guest'] }, {}, { guest: true }, 'refused_claim'],
  [{ refuse: ['act.sub'] }, { act: {} }, { act: { sub: 'x' } }, 'refused_claim'],
  [{ subjectClaim: 'uid' }, { uid: 'u1' }, {}, 'sub'],
  [{ clockTolerance: 0 }, {}, { nbf: Math.floor(Date.now() / 1000) + 300 }, 'nbf'],
]

/** Rules that apply wherever a token names the client, or its audience in another claim. */
const CLIENT_RULES: readonly (readonly [string, object, object, object, string])[] = [
  ...['an access token', 'introspection', 'UserInfo', 'an identity assertion'].map(
    (door) => [door, { clients: ['test-*'] }, {}, { client_id: 'other' }, 'client_id'] as const,
  ),
  ...['an access token', 'introspection', 'UserInfo', 'an identity assertion'].map(
    (door) =>
      [door, { audienceClaim: 'target' }, { target: API }, { target: 'reports' }, 'aud'] as const,
  ),
]

describe.each(Object.keys(DOORS))('by %s [S83]', (door) => {
  test.each(RULES)('the rule %j applies', async (rule, met, unmet, check) => {
    expect(await checkOf(door, configOf(rule), met)).toBe(undefined)
    expect(await checkOf(door, configOf(rule), unmet)).toBe(check)
  })
})

test.each(CLIENT_RULES)(
  'by %s, the rule %j applies [S83]',
  async (door, rule, met, unmet, check) => {
    expect(await checkOf(door, configOf(rule), met)).toBe(undefined)
    expect(await checkOf(door, configOf(rule), unmet)).toBe(check)
  },
)

test('rules about the kind of an access token do not apply to other tokens [S83]', async () => {
  const config = configOf({ require: { token_use: 'access', typ: 'Bearer' }, refuse: ['nonce'] })
  expect(await checkOf('an ID token', config, { nonce: 'n' })).toBe(undefined)
  expect(await checkOf('an identity assertion', config, {})).toBe(undefined)
  expect(await checkOf('an access token', config, {})).toBe('required_claim')
})

test('in an assertion, no other claim takes the place of `client_id` [S81]', async () => {
  const config = issuerFor(configOf({}), { use: 'assertion', audience: GATEWAY })
  const verifier = createTokenVerifier({ issuers: [config], now })
  for (const client_id of [undefined, null, '']) {
    const claims = { aud: GATEWAY, client_id, azp: 'a', cid: 'a', appid: 'a' }
    const token = await mint(key, { header: { typ: 'oauth-id-jag+jwt' }, claims })
    expect((await verifier.verify(token)).client).toBe(undefined)
  }
})
