/** Opaque tokens of a real OpenID Provider, by introspection and by userinfo. */
import { afterEach, expect, test, vi } from 'vitest'
import { introspection } from '../../../src/features/introspection/index.ts'
import type { AuthenticationDemand } from '../../../src/policy/definition.ts'
import {
  JWT_RESOURCE,
  type OidcProvider,
  OPAQUE_RESOURCE,
  startOidcProvider,
} from '../../harness/oidc-provider.ts'
import { type ProviderGateway, startProviderGateway } from '../../identity-providers/gateway.ts'

const INTROSPECTION = '/token/introspection'
const MAX_AGE_SECONDS = 60

let provider: OidcProvider
let gateway: ProviderGateway
afterEach(async () => {
  vi.useRealTimers()
  await gateway.close()
  await provider.close()
})

interface StartOptions {
  readonly claims?: object
  readonly authentication?: AuthenticationDemand
}

async function start(
  entry: object = {},
  client: object = {},
  { claims, ...options }: StartOptions = {},
): Promise<void> {
  provider = await startOidcProvider({ claims: { roles: ['reader'], ...claims } })
  const { issuer } = provider
  const fields = { audience: OPAQUE_RESOURCE, introspection: {}, ...entry }
  gateway = await startProviderGateway([{ issuer, ...fields }], {
    ...options,
    features: [introspection()],
    environment: {
      ISSUER_CLIENTS: JSON.stringify([{ issuer, ...provider.client, ...client }]),
    },
  })
}

const introspections = () => provider.calls.filter((path) => path === INTROSPECTION).length

test('an opaque token of a user is accepted with its claims, and its JWTs as before', async () => {
  await start({ audience: [OPAQUE_RESOURCE, JWT_RESOURCE] })
  const { accessToken } = await provider.logIn(OPAQUE_RESOURCE)
  expect(accessToken).not.toContain('.')
  expect(await gateway.outcomeOf(accessToken)).toBe('200')
  expect(gateway.events.at(-1)?.actor.subject).toBe('alice')
  expect(introspections()).toBe(1)
  const { accessToken: jwt } = await provider.logIn(JWT_RESOURCE)
  expect(await gateway.outcomeOf(jwt)).toBe('200')
  expect(introspections()).toBe(1)
})

test('with form "jwt", the JWTs of the issuer are introspected, and opaque tokens are refused', async () => {
  await start({ audience: OPAQUE_RESOURCE, introspection: { form: 'jwt' } })
  const opaque = (await provider.logIn(OPAQUE_RESOURCE)).accessToken
  expect(await gateway.outcomeOf(opaque)).toBe('401 token_rejected:segments')
  expect(introspections()).toBe(0)
  const jwt = (await provider.logIn(JWT_RESOURCE)).accessToken
  // This provider responds with an error to the introspection of its JWTs.
  expect(await gateway.outcomeOf(jwt)).toBe('401 token_rejected:inactive')
  expect(introspections()).toBe(1)
})

test('a route that demands a login reads it from the response of the introspection', async () => {
  const authTime = Math.floor(Date.now() / 1000) - 60
  const authentication = { acr: ['mfa'], maxAgeSeconds: 300 }
  await start({}, {}, { claims: { acr: 'mfa', auth_time: authTime }, authentication })
  const { accessToken } = await provider.logIn(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(accessToken)).toBe('200')
  await gateway.close()
  await provider.close()
  // With milliseconds, the provider states no time.
  await start({}, {}, { claims: { acr: 'mfa', auth_time: authTime * 1000 }, authentication })
  const { accessToken: other } = await provider.logIn(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(other)).toBe('401 insufficient_user_authentication:auth_time')
})

test('a token for another audience is refused', async () => {
  await start({ audience: 'https://third.example.com' })
  const { accessToken } = await provider.logIn(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(accessToken)).toBe('401 token_rejected:aud')
})

test('a refresh token is refused', async () => {
  await start()
  const { refreshToken } = await provider.logIn(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(refreshToken)).toBe('401 token_rejected:aud')
})

test('a token that the provider revoked is refused after maxAgeSeconds', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  await start()
  const { accessToken } = await provider.logIn(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(accessToken)).toBe('200')
  await provider.revoke(accessToken)
  expect(await gateway.outcomeOf(accessToken)).toBe('200')
  vi.setSystemTime(Date.now() + MAX_AGE_SECONDS * 1000)
  expect(await gateway.outcomeOf(accessToken)).toBe('401 token_rejected:inactive')
})

test('a wrong client secret is an outage, not a bad token', async () => {
  await start({}, { secret: 'wrong-secret' })
  const { accessToken } = await provider.logIn(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(accessToken)).toBe('503 introspection:refused')
})

test('an opaque token is accepted by userinfo', async () => {
  provider = await startOidcProvider()
  const { issuer } = provider
  gateway = await startProviderGateway(
    [
      {
        issuer,
        audience: 'orders',
        userinfo: { audience: 'any' },
        rolesClaim: 'sub',
        rolesMap: { alice: 'reader' },
      },
    ],
    { features: [introspection()] },
  )
  const { accessToken: token } = await provider.logIn('userinfo')
  expect(await gateway.outcomeOf(token)).toBe('200')
  expect(gateway.events.at(-1)?.actor.subject).toBe('alice')
  expect(provider.calls.filter((path) => path === '/me')).toHaveLength(1)
  expect(await gateway.outcomeOf('another-token')).toBe('401 token_rejected:inactive')
})
