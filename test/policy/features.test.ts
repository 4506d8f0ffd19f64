/** Opt-in features: what a policy does not import is absent, and a setting of it is a mistake. */
import { describe, expect, test } from 'vitest'
import { openapi } from '../../src/features/openapi.ts'
import { otlp } from '../../src/features/otlp.ts'
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

const gatewayWith = (policy: Policy) => createGateway(composeServices(environment, policy), policy)

describe('the description of the API', () => {
  test.each(['/-/openapi.json', '/-/docs'])('%s exists only with openapi()', async (path) => {
    const address = { headers: { 'CF-Connecting-IP': '192.0.2.1' } }
    const statusOf = async (policy: Policy) =>
      (await gatewayWith(policy).request(`https://gateway.test${path}`, address)).status
    expect(await statusOf(policyWith({}))).toBe(404)
    expect(await statusOf(policyWith({ features: [openapi()] }))).toBe(200)
  })
})

describe('the export of traces', () => {
  const traced = { ...environment, OTLP_ENDPOINT: 'https://collector.test' }

  test('OTLP_ENDPOINT without otlp() is a mistake that names the import', () => {
    expect(() => composeServices(traced, policyWith({}))).toThrow(
      "OTLP_ENDPOINT: needs otlp() in the policy's features; import { otlp } from 'portcullis/otlp'",
    )
  })

  test('otlp() exports spans only if OTLP_ENDPOINT is set', () => {
    const policy = policyWith({ features: [otlp()] })
    expect(composeServices(traced, policy).spans).toBeDefined()
    expect(composeServices(environment, policy).spans).toBeUndefined()
  })
})

test('a list of features accepts only what a function of a feature returned', () => {
  for (const wrong of ['openapi', openapi, {}, null, { feature: 'leases' }])
    expect(() => policyWith({ features: [wrong as never] })).toThrow(
      "features[0]: must be the result of openapi() from 'portcullis/openapi'",
    )
})
