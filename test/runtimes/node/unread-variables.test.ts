/** A misspelled variable has no effect, and the gateway says so. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { definePolicy } from '../../../src/index.ts'
import { check } from '../../../src/runtimes/node/index.ts'

const env = {
  UPSTASH_REDIS_REST_URL: 'https://redis.example',
  UPSTASH_REDIS_REST_TOKEN: 'x',
  PUBLIC_URL: 'https://gateway.example',
  ORIGIN_URL: 'https://origin.example',
}
const open = { method: 'GET', path: '/open', anonymous: true } as const

afterEach(() => vi.restoreAllMocks())

async function warningsOf(variables: Record<string, string>, features = false) {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  const policy = definePolicy({
    roles: {},
    limits: {},
    routes: [open],
    ...(features && { features: [authorizationServer()] }),
  })
  await check({ policy, env: { ...env, ...variables } })
  return warn.mock.calls.flat()
}

describe('the gateway names a variable that it does not read', () => {
  test.each([
    ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
    ['REDIS_PREFIXX', 'REDIS_PREFIX'],
    ['AUDIT_DATABSE', 'AUDIT_DATABASE'],
    ['audit_addresses', 'AUDIT_ADDRESSES'],
    ['METRIC_ACCESS', 'METRICS_ACCESS'],
    ['ISSUER', 'ISSUERS'],
  ])('%s', async (name, meant) => {
    expect(await warningsOf({ [name]: 'x' })).toEqual([
      `${name}: is not read; did you mean "${meant}"?`,
    ])
  })

  test('of a feature of its policy', async () => {
    const lines = await warningsOf({ CLIENT: '[]' }, true)
    expect(lines).toContain('CLIENT: is not read; did you mean "CLIENTS"?')
  })
})

test('it says nothing of other variables, and of one beside that which is meant', async () => {
  const others = {
    PATH: '/bin',
    HOME: '/home/x',
    HOSTNAME: 'x',
    LOGIN: 'x',
    SSL_CERT_FILE: '/x',
    CLIENT_ID: 'x',
    CLIENT_SECRET: 'x',
    DATABASE_URL: 'x',
    REDIS_HOST: 'x',
    REDIS_PORT: '6379',
    REDIS_SERVICE_HOST: 'x',
    HTTPS_PROXY: 'x',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'x',
    PORTS: '1',
    TRUSTED_PROXIES: '10.0.0.0/8',
    TRUSTED_PROXY: '10.0.0.0/8',
    // As Kubernetes sets for each Service.
    ISSUER: 'tcp://10.96.0.1:80',
  }
  expect(await warningsOf(others)).toEqual([])
})
