/** Opt-in features: what a policy does not import is absent, and a setting of it is a mistake. */

import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { authorizationCode } from '../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../src/features/authorization-server/index.ts'
import { openapi } from '../../src/features/openapi/index.ts'
import { operators } from '../../src/features/operators/index.ts'
import { otlp } from '../../src/features/otlp/index.ts'
import { signIn } from '../../src/features/sign-in/index.ts'
import { WORKERS } from '../../src/gateway/runtime.ts'
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
  type Policy,
  type PolicyDefinition,
} from '../../src/index.ts'

const environment: GatewayEnv = {
  UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9',
  UPSTASH_REDIS_REST_TOKEN: 'token',
  PUBLIC_URL: 'https://gateway.test',
  ORIGIN_URL: 'http://127.0.0.1:9',
}

const policyWith = (fields: Partial<PolicyDefinition<string, string>>): Policy =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [{ method: 'GET', path: '/a', anonymous: true }],
    ...fields,
  })

const gatewayWith = (policy: Policy, env = environment) =>
  createGateway(composeServices(env, policy, WORKERS), policy)

/** Returns the status of a request to a gateway, which has no Redis. */
async function statusOf(policy: Policy, path: string, init: RequestInit = {}, env = environment) {
  const request = new Request(`https://gateway.test${path}`, init)
  request.headers.set('CF-Connecting-IP', '192.0.2.1')
  return (await gatewayWith(policy, env).request(request)).status
}

const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const signingJwk = { ...key.export({ format: 'jwk' }), kid: 'k', alg: 'ES256' }
const signing = { ...environment, SIGNING_KEYS: JSON.stringify({ keys: [signingJwk] }) }

describe('the description of the API', () => {
  test.each(['/-/openapi.json', '/-/docs'])('%s exists only with openapi()', async (path) => {
    expect(await statusOf(policyWith({}), path)).toBe(404)
    expect(await statusOf(policyWith({ features: [openapi()] }), path)).toBe(200)
  })
})

describe("the operators' API", () => {
  test.each([
    ['GET', '/-/admin/keys'],
    ['POST', '/-/admin/clients'],
    ['DELETE', '/-/admin/bans/0190f8a0-7c3a-7000-8000-000000000001'],
  ])('%s %s exists only with operators()', async (method, path) => {
    expect(await statusOf(policyWith({}), path, { method })).toBe(404)
    expect(await statusOf(policyWith({ features: [operators()] }), path, { method })).toBe(401)
  })

  test('a limit for operators without operators() is a mistake, unless a route uses it', () => {
    const limits = {
      operators: { limit: 1, windowSeconds: 1, by: 'address', onUnavailable: 'deny' },
    } as const
    expect(() => policyWith({ limits })).toThrow(
      "limits.operators: needs operators() in the policy's features; import { operators } from 'portcullis/operators'",
    )
    policyWith({ limits, features: [operators()] })
    policyWith({
      limits,
      routes: [{ method: 'GET', path: '/a', anonymous: true, limits: ['operators'] }],
    })
  })
})

describe('the authorization server', () => {
  const METADATA = '/.well-known/oauth-authorization-server'
  const form = (path: string) => ({
    path,
    init: { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
  })
  const withServer = policyWith({ features: [authorizationServer()] })

  test.each([
    { path: METADATA, init: {}, status: 200 },
    { ...form('/oauth/token'), status: 401 },
    { ...form('/oauth/revoke'), status: 401 },
    { ...form('/oauth/introspect'), status: 401 },
  ])(
    '$path exists only with authorizationServer() and SIGNING_KEYS',
    async ({ path, init, status }) => {
      expect(await statusOf(policyWith({}), path, init, signing)).toBe(404)
      expect(await statusOf(withServer, path, init)).toBe(404)
      expect(await statusOf(withServer, path, init, signing)).toBe(status)
    },
  )

  test('CLIENTS without authorizationServer() is a mistake that names the import', () => {
    const CLIENTS = JSON.stringify([
      {
        id: '0190f8a0-7c3a-7000-8000-000000000001',
        grants: ['client_credentials'],
        secretSha256: 'A'.repeat(43),
      },
    ])
    const env = { ...signing, CLIENTS }
    expect(() => composeServices(env, policyWith({ features: [operators()] }), WORKERS)).toThrow(
      "CLIENTS: needs authorizationServer() in the policy's features; " +
        "import { authorizationServer } from 'portcullis/authorization-server'",
    )
    composeServices(env, withServer, WORKERS)
  })

  test('SIGNAL_TRANSMITTERS without signals() is a mistake that names the import', () => {
    const issuer = 'https://login.example.com'
    const SIGNAL_TRANSMITTERS = JSON.stringify([{ issuer, authorization: 'Bearer of the test' }])
    expect(() =>
      composeServices({ ...signing, SIGNAL_TRANSMITTERS }, policyWith({}), WORKERS),
    ).toThrow(
      "SIGNAL_TRANSMITTERS: needs signals() in the policy's features; import { signals } from 'portcullis/signals'",
    )
    composeServices({ ...signing, SIGNAL_TRANSMITTERS: '[]' }, policyWith({}), WORKERS)
  })

  test('with the profile fapi2, clients that register themselves are a mistake', () => {
    const compose = (definition: Parameters<typeof authorizationCode>[0]) => {
      const provider = { issuer: 'https://login.example.com', audience: 'https://gateway.test' }
      const client = { issuer: provider.issuer, id: 'a', secret: 's', signIn: { name: 'Example' } }
      const features = [
        authorizationServer({ profile: 'fapi2' }),
        signIn(),
        authorizationCode(definition),
      ]
      const env = {
        ...signing,
        ISSUERS: JSON.stringify([provider]),
        ISSUER_CLIENTS: JSON.stringify([client]),
      }
      return composeServices(env, policyWith({ features }), WORKERS)
    }
    compose({})
    for (const field of ['registration', 'documents'] as const)
      expect(() => compose({ [field]: field === 'documents' ? {} : true })).toThrow(
        `features.authorizationCode.${field}: such clients have no key, so the profile fapi2 refuses them`,
      )
  })

  test('with the profile fapi2, a configured client that acts for users by a secret is a mistake', () => {
    const features = [operators(), authorizationServer({ profile: 'fapi2' })]
    const compose = (grants: readonly string[]) => {
      const id = '0190f8a0-7c3a-7000-8000-000000000001'
      const CLIENTS = JSON.stringify([{ id, grants, secretSha256: 'A'.repeat(43) }])
      return composeServices({ ...signing, CLIENTS }, policyWith({ features }), WORKERS)
    }
    compose(['client_credentials'])
    expect(() => compose(['urn:ietf:params:oauth:grant-type:token-exchange'])).toThrow(
      'CLIENTS[0].jwks: is missing; with the profile fapi2, clients that act for users authenticate by private_key_jwt',
    )
  })

  test('one error names the mistakes in the variables of features and in all others [R31]', () => {
    const env = { ...signing, CLIENTS: '[{}]', PUBLIC_URL: 'ftp://x' }
    const compose = () => composeServices(env, withServer, WORKERS)
    expect(compose).toThrow('CLIENTS[0].id: must be a UUID')
    expect(compose).toThrow('PUBLIC_URL: must be an http or https URL')
  })

  test('SIGNING_KEYS alone signs assertions for the origin, and the keys are published', async () => {
    const policy = policyWith({})
    expect(composeServices(signing, policy, WORKERS).assertions).toBeDefined()
    expect(await statusOf(policy, '/.well-known/jwks.json', {}, signing)).toBe(200)
  })

  const EITHER =
    "needs authorizationServer() or operators() in the policy's features; import " +
    "{ authorizationServer } from 'portcullis/authorization-server' or import { operators } from " +
    "'portcullis/operators'"
  const SERVER =
    "needs authorizationServer() in the policy's features; import { authorizationServer } from " +
    "'portcullis/authorization-server'"
  test.each([
    ['accessTokenSeconds', 600, EITHER],
    ['sessionSeconds', 86_400, EITHER],
    ['refreshGraceSeconds', 5, SERVER],
    ['exchangeLimits', {}, SERVER],
  ])('tokens.%s without a feature that uses it is a mistake', (field, value, message) => {
    const tokens = { [field]: value }
    expect(() => policyWith({ tokens })).toThrow(`tokens.${field}: ${message}`)
    policyWith({ tokens, features: [authorizationServer()] })
    const withOperators = () => policyWith({ tokens, features: [operators()] })
    if (message === EITHER) withOperators()
    else expect(withOperators).toThrow(`tokens.${field}: ${message}`)
  })

  test('tokens.dpopNonceRequired needs no feature, because routes require nonces, too', () => {
    expect(policyWith({ tokens: { dpopNonceRequired: true } }).tokens.dpopNonceRequired).toBe(true)
  })

  test('tokens.sources needs no feature, because API keys of another gateway are accepted, too', () => {
    const sources = [{ header: 'X-API-Key' }]
    expect(policyWith({ tokens: { sources } }).tokens.sources).toEqual(sources)
    expect(() => policyWith({ tokens: { sources: [{ query: 'key' } as never] } })).toThrow(
      /tokens\.sources\[0\]: .* a query parameter is not possible/,
    )
  })
})

describe('the export of traces', () => {
  const traced = { ...environment, OTLP_ENDPOINT: 'https://collector.test' }

  test('OTLP_ENDPOINT without otlp() is a mistake that names the import', () => {
    expect(() => composeServices(traced, policyWith({}), WORKERS)).toThrow(
      "OTLP_ENDPOINT: needs otlp() in the policy's features; import { otlp } from 'portcullis/otlp'",
    )
  })

  const tracesOf = (...given: [GatewayEnv, Policy]) =>
    composeServices(...given, WORKERS).contributions?.flatMap(({ traces }) => traces ?? [])

  test('otlp() exports spans only if OTLP_ENDPOINT is set', () => {
    const policy = policyWith({ features: [otlp()] })
    expect(tracesOf(traced, policy)).toHaveLength(1)
    expect(tracesOf(environment, policy)).toEqual([])
  })
})

test('a list of features accepts only what a function of a feature returned', () => {
  for (const wrong of ['openapi', openapi, {}, null, { feature: 'leases' }])
    expect(() => policyWith({ features: [wrong as never] })).toThrow(
      'features[0]: must be the result of the function of a feature, such as operators() from',
    )
})

test('a setting of introspection without the feature is a mistake that names the import', () => {
  const entry = {
    issuer: 'https://idp.example.com',
    audience: 'api',
    userinfo: { audience: 'any' },
  }
  const env = { ...environment, ISSUERS: JSON.stringify([entry]) }
  expect(() => composeServices(env, policyWith({}), WORKERS)).toThrow(
    "ISSUERS[0].userinfo: needs introspection() in the policy's features; import { introspection } from 'portcullis/introspection'",
  )
})

test.each([
  [{ endedApiKeyDays: 0 }, 'operators.endedApiKeyDays'],
  [{ endedApiKeyDays: 3_651 }, 'operators.endedApiKeyDays'],
  [{ endedApiKeyDays: 1.5 }, 'operators.endedApiKeyDays'],
])('a mistake in the options of operators() is named: %j', (options, message) => {
  expect(() => operators(options)).toThrow(message)
  expect(operators({ endedApiKeyDays: 1 })).toMatchObject({ name: 'operators' })
})
