/** Tokens of a real OpenID Provider, which the gateway finds by discovery. */
import { afterEach, expect, test, vi } from 'vitest'
import { createKey, mint } from '../harness/issuer.ts'
import {
  JWT_RESOURCE,
  type OidcProvider,
  type OidcProviderOptions,
  OPAQUE_RESOURCE,
  OTHER_RESOURCE,
  startOidcProvider,
} from '../harness/oidc-provider.ts'
import { type ProviderGateway, startProviderGateway } from './gateway.ts'

const METADATA = '/.well-known/openid-configuration'
const KEYS = '/jwks'
/** A token with an unknown key causes at most one download in this time. */
const COOL_DOWN_MS = 30_000

const key = await createKey('other')
let provider: OidcProvider
let gateway: ProviderGateway
afterEach(async () => {
  vi.useRealTimers()
  await gateway.close()
  await provider.close()
})

async function start(entry: object = {}, options: OidcProviderOptions = {}): Promise<void> {
  provider = await startOidcProvider({ claims: { roles: ['reader'] }, ...options })
  const { issuer } = provider
  gateway = await startProviderGateway([{ issuer, audience: JWT_RESOURCE, ...entry }])
}

const downloads = () => provider.calls.filter((path) => path === METADATA || path === KEYS)

test('access tokens of users and of clients are accepted with issuer and audience alone', async () => {
  await start()
  const { accessToken } = await provider.logIn()
  expect(await gateway.outcomeOf(accessToken)).toBe('200')
  expect(await gateway.outcomeOf(await provider.clientToken())).toBe('200')
  expect(downloads()).toEqual([METADATA, KEYS])
})

test('an ID token is refused, even if its audience is trusted', async () => {
  await start({ audience: ['orders-web', JWT_RESOURCE] })
  const { idToken } = await provider.logIn()
  expect(await gateway.outcomeOf(idToken)).toBe('401 token_rejected:typ')
})

test('an ID token is refused by its claims if the entry permits its type', async () => {
  await start({
    audience: ['orders-web', JWT_RESOURCE],
    typ: ['at+jwt', 'none'],
    clients: ['orders-*'],
    clientClaim: [['client_id'], ['aud']],
  })
  const { accessToken, idToken } = await provider.logIn()
  expect(await gateway.outcomeOf(accessToken)).toBe('200')
  expect(await gateway.outcomeOf(idToken)).toBe('401 token_rejected:refused_claim')
})

test('tokens for another resource and opaque tokens are refused', async () => {
  await start()
  const other = await provider.clientToken(OTHER_RESOURCE)
  expect(await gateway.outcomeOf(other)).toBe('401 token_rejected:aud')
  const opaque = await provider.clientToken(OPAQUE_RESOURCE)
  expect(await gateway.outcomeOf(opaque)).toBe('401 token_rejected:segments')
})

test('tokens of a new key are accepted, and those of the removed key are refused', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  await start()
  const before = await provider.clientToken()
  expect(await gateway.outcomeOf(before)).toBe('200')
  await provider.rotate()
  const after = await provider.clientToken()
  vi.setSystemTime(Date.now() + COOL_DOWN_MS)
  expect(await gateway.outcomeOf(after)).toBe('200')
  expect(await gateway.outcomeOf(before)).toBe('401 token_rejected:kid_unknown')
  expect(downloads()).toEqual([METADATA, KEYS, KEYS])
})

test('a provider that names another issuer is an outage, and its tokens are refused', async () => {
  provider = await startOidcProvider({ issuerAt: () => 'https://idp.example.com' })
  const { url } = provider
  gateway = await startProviderGateway([{ issuer: url, audience: JWT_RESOURCE }])
  expect(await gateway.outcomeOf(await provider.clientToken())).toBe('401 token_rejected:iss')
  expect(downloads()).toEqual([])
  const claims = { iss: url, aud: JWT_RESOURCE, roles: ['reader'] }
  expect(await gateway.outcomeOf(await mint(key, { claims }))).toBe('503 key_set:malformed')
  expect(downloads()).not.toContain(KEYS)
})
