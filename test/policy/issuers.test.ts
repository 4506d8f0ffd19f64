/** Issuers in the policy, in place of the variable: the tokens that a gateway accepts, and what is a mistake. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { checkEnvironment } from '../../cli/doctor/environment.ts'
import { gatewayVars } from '../../dev/start/gateway-vars.ts'
import { readSettings } from '../../dev/start/settings.ts'
import { Misconfigured } from '../../src/errors.ts'
import {
  composeServices,
  defineIssuers,
  definePolicy,
  type GatewayEnv,
  type IssuerInput,
  WORKERS,
} from '../../src/index.ts'
import { check } from '../../src/runtimes/node/index.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { ISSUER } from '../harness/issuer.ts'

const BOTH = 'ISSUERS: is set, and the policy has issuers too; remove one of them'

const policyOf = (issuers: readonly IssuerInput[]) =>
  definePolicy({
    issuers: defineIssuers(issuers),
    roles: { reader: ['notes:read'] },
    limits: {},
    routes: [{ method: 'GET', path: '/notes', permission: 'notes:read' }],
  })

function mistakesIn(act: () => unknown): readonly string[] {
  try {
    act()
    return []
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
}

test('a field or a preset that does not exist is an error of the compiler', () => {
  const auth0 = { preset: 'auth0', issuer: 'https://a.eu.auth0.com/', audience: 'api' } as const
  const all: unknown = () => [
    defineIssuers([auth0]),
    // @ts-expect-error: audience is wrong
    defineIssuers([{ preset: 'auth0', issuer: 'https://a.eu.auth0.com/', audiences: 'api' }]),
    // @ts-expect-error: no such field
    defineIssuers([{ ...auth0, nonsense: 1 }]),
    // @ts-expect-error: rolesMap is wrong
    defineIssuers([{ issuer: ISSUER, audience: 'api', roleMap: {} }]),
    // @ts-expect-error: no such preset
    defineIssuers([{ ...auth0, preset: 'auht0' }]),
  ]
  expect(all).toBeInstanceOf(Function)
})

describe('a policy with issuers', () => {
  let gateway: TestGateway
  let own: readonly IssuerInput[]

  beforeAll(async () => {
    gateway = await startGateway({ variables: { ISSUERS: undefined } })
    const { publicUrl: audience, key } = gateway
    own = [{ issuer: ISSUER, audience, jwks: { keys: [key.publicJwk] } }]
  })
  afterEach(() => void vi.restoreAllMocks())
  afterAll(() => gateway.close())

  const variables = () => gateway.environment as Record<string, string>
  const trusting = () => JSON.stringify(own)

  test('accepts their tokens, and no others, without the variable', async () => {
    const app = gateway.isolate(policyOf(own))
    const get = async (claims?: object) => {
      const token = await gateway.token({ claims: { ...claims } })
      const headers = { Authorization: `Bearer ${token}` }
      return (await app.request(`${gateway.publicUrl}/notes`, { headers })).status
    }
    expect(await get()).toBe(200)
    expect(gateway.requests).toHaveLength(1)
    expect(await get({ iss: 'https://other.test' })).toBe(401)
    expect(gateway.requests).toHaveLength(1)
  })

  test('does not start if the variable is set too', async () => {
    const env = { ...variables(), ISSUERS: trusting() } as GatewayEnv & Record<string, string>
    expect(mistakesIn(() => composeServices(env, policyOf(own), WORKERS))).toEqual([BOTH])
    await expect(check({ policy: policyOf(own), env })).rejects.toThrow(BOTH)
  })

  test('starts on Node without a warning that there is no issuer', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    await check({ policy: policyOf(own), env: variables() })
    const lines = warn.mock.calls.flat().filter((line) => /there is no issuer/.test(line))
    expect(lines).toEqual([])
  })

  test('names the mistakes of an entry with their places in the policy', () => {
    const wrong = [{ issuer: 'http://idp.test', audience: 'api', typ: 'none' }]
    expect(mistakesIn(() => policyOf(wrong))).toEqual([
      expect.stringMatching(/^issuers\[0\]\.issuer: must be an https URL/),
      expect.stringMatching(/^issuers\[0\]\.typ: accepts tokens without typ/),
    ])
  })

  test('refuses secrets, which a policy file must not contain', () => {
    const keys = [{ kty: 'oct', k: 'c2VjcmV0' }]
    const issuers = [
      { issuer: ISSUER, audience: 'api', algorithms: ['HS256'], jwks: { keys } },
    ] as const
    expect(mistakesIn(() => policyOf(issuers))).toEqual([
      'issuers[0].jwks: contains a secret, and a policy must not: set ISSUERS instead',
    ])
  })

  test('lets `doctor` and the development server check clients of its issuers', () => {
    const introspected = JSON.stringify([{ ...own[0], introspection: {} }])
    const client = JSON.stringify([{ issuer: ISSUER, id: 'gateway', secret: 'x' }])
    const values = { ...variables(), ISSUER_CLIENTS: client }
    const seen = (given: Record<string, string>) =>
      checkEnvironment(given, false, 0, undefined, introspected).findings.map((one) => one.seen)
    expect(seen(values)).toEqual([expect.stringContaining('all valid')])
    expect(seen({ ...values, ISSUERS: introspected })).toEqual([BOTH])
    const settings = readSettings([], { ISSUER_CLIENTS: client }, '/')
    if (settings === 'help') throw new Error('there are no settings')
    const vars = (issuers?: string) =>
      gatewayVars(
        settings,
        variables() as never,
        gateway.publicUrl,
        { url: 'http://r.test', token: 'x' },
        { authorizationServer: false, issuers },
      )
    expect(mistakesIn(() => vars(introspected))).toEqual([])
    expect(mistakesIn(() => vars())).toEqual([
      expect.stringMatching(/^ISSUER_CLIENTS\[0\]\.issuer: must be an issuer/),
    ])
  })
})
