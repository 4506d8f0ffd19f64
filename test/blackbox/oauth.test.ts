/**
 * Two widely used OAuth clients against two gateways, with all their checks. The only exception is
 * plain http, because the gateways listen on a loopback address: `allowInsecureRequests` in both.
 */
import { exportJWK, generateKeyPair } from 'jose'
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'
import {
  ACCESS_TOKEN,
  createStackClient,
  EXCHANGE,
  postAs,
  type StackClient,
} from './oauth-clients.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const http = { [oauth.allowInsecureRequests]: true } as const

let own: StackClient
let server: oauth.AuthorizationServer
beforeAll(async () => {
  own = await createStackClient(stack, { roles: ['reader'] })
  const issuer = new URL(here)
  const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...http })
  server = await oauth.processDiscoveryResponse(issuer, found)
})

/** The same authorization server at the other gateway. */
const elsewhere = (): oauth.AuthorizationServer => ({
  ...server,
  token_endpoint: `${there}/oauth/token`,
  revocation_endpoint: `${there}/oauth/revoke`,
  introspection_endpoint: `${there}/oauth/introspect`,
})

const call = async (gateway: string, token: string): Promise<number> => {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${gateway}/orders`, { headers })
  await response.body?.cancel()
  return response.status
}
const login = () => mint(stack.inlineKey)
const exchangeParameters = async () => ({
  subject_token: await login(),
  subject_token_type: ACCESS_TOKEN,
})

describe('oauth4webapi', () => {
  const described = () => ({ client_id: own.id })

  test.each([
    ['client_secret_basic', () => oauth.ClientSecretBasic(own.secret)],
    ['client_secret_post', () => oauth.ClientSecretPost(own.secret)],
  ] as const)('obtains a token with client credentials (%s)', async (_, auth) => {
    const response = await oauth.clientCredentialsGrantRequest(
      ...([server, described(), auth(), {}, http] as const),
    )
    const tokens = await oauth.processClientCredentialsResponse(server, described(), response)
    expect(tokens.token_type).toBe('bearer')
    expect(await call(there, tokens.access_token)).toBe(200)
  })

  test('obtains a token with private_key_jwt', async () => {
    const keys = await generateKeyPair('ES256', { extractable: true })
    const jwks = { keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'its own' }] }
    const keyed = await createStackClient(stack, { jwks, roles: ['reader'] })
    const auth = oauth.PrivateKeyJwt({ key: keys.privateKey, kid: 'its own' })
    const id = { client_id: keyed.id }
    for (const as of [server, elsewhere()]) {
      const response = await oauth.clientCredentialsGrantRequest(as, id, auth, {}, http)
      const tokens = await oauth.processClientCredentialsResponse(as, id, response)
      expect(await call(here, tokens.access_token)).toBe(200)
    }
  })

  test('exchanges, refreshes, introspects and revokes: the next request is 401 at both [S30]', async () => {
    const auth = oauth.ClientSecretBasic(own.secret)
    const exchanged = await oauth.processGenericTokenEndpointResponse(
      server,
      described(),
      await oauth.genericTokenEndpointRequest(
        ...([server, described(), auth, EXCHANGE, await exchangeParameters(), http] as const),
      ),
    )
    expect(exchanged).toMatchObject({
      issued_token_type: ACCESS_TOKEN,
      // In whole seconds, which pass between the decision and the response.
      expires_in: expect.closeTo(900, -1),
    })
    expect(await call(there, exchanged.access_token)).toBe(200)
    const refreshed = await oauth.processRefreshTokenResponse(
      elsewhere(),
      described(),
      await oauth.refreshTokenGrantRequest(
        ...([elsewhere(), described(), auth, exchanged.refresh_token ?? '', http] as const),
      ),
    )
    expect(await call(here, refreshed.access_token)).toBe(200)

    const introspect = async () =>
      oauth.processIntrospectionResponse(
        server,
        described(),
        await oauth.introspectionRequest(
          ...([server, described(), auth, refreshed.access_token, http] as const),
        ),
      )
    expect(await introspect()).toMatchObject({ active: true, client_id: own.id, iss: here })
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(
        ...([elsewhere(), described(), auth, refreshed.refresh_token ?? '', http] as const),
      ),
    )
    await forget(stack.origin)
    for (const gateway of [here, there])
      for (const token of [exchanged.access_token, refreshed.access_token])
        expect(await call(gateway, token)).toBe(401)
    expect(await recordsOf(stack.origin)).toEqual([])
    expect(await introspect()).toEqual({ active: false })
  })

  test('binds a session to a key: token, call and refresh', async () => {
    const auth = oauth.ClientSecretBasic(own.secret)
    const DPoP = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
    const options = { ...http, DPoP }
    const first = await oauth.processGenericTokenEndpointResponse(
      server,
      described(),
      await oauth.genericTokenEndpointRequest(
        ...([server, described(), auth, EXCHANGE, await exchangeParameters(), options] as const),
      ),
    )
    expect(first.token_type).toBe('dpop')
    expect(await call(here, first.access_token)).toBe(401)
    for (const gateway of [here, there]) {
      const response = await oauth.protectedResourceRequest(
        ...([first.access_token, 'GET', new URL(`${gateway}/orders`)] as const),
        ...([undefined, undefined, options] as const),
      )
      expect(response.status).toBe(200)
    }
    const next = await oauth.processRefreshTokenResponse(
      server,
      described(),
      await oauth.refreshTokenGrantRequest(
        ...([server, described(), auth, first.refresh_token ?? '', options] as const),
      ),
    )
    expect(next.token_type).toBe('dpop')
    const unbound = await oauth.refreshTokenGrantRequest(
      ...([server, described(), auth, next.refresh_token ?? '', http] as const),
    )
    expect(await unbound.json()).toMatchObject({ error: 'invalid_dpop_proof' })
  })

  test('parses the error of a refusal', async () => {
    const wrong = oauth.ClientSecretPost('wrong')
    const refused = async (auth: oauth.ClientAuth, parameters: Record<string, string>) =>
      oauth.processClientCredentialsResponse(
        server,
        described(),
        await oauth.clientCredentialsGrantRequest(server, described(), auth, parameters, http),
      )
    const { privateKey } = await oauth.generateKeyPair('ES256')
    for (const auth of [wrong, oauth.ClientSecretBasic('wrong'), oauth.PrivateKeyJwt(privateKey)])
      await expect(refused(auth, {})).rejects.toThrow(oauth.WWWAuthenticateChallengeError)
    const right = oauth.ClientSecretPost(own.secret)
    await expect(refused(right, { scope: '"' })).rejects.toMatchObject({ error: 'invalid_scope' })
    await expect(refused(right, { resource: 'https://x.test' })).rejects.toMatchObject({
      error: 'invalid_target',
    })
  })
})

describe('openid-client', () => {
  const configure = () =>
    client.discovery(new URL(here), own.id, own.secret, client.ClientSecretBasic(own.secret), {
      algorithm: 'oauth2',
      execute: [client.allowInsecureRequests],
    })

  test('discovers, obtains, refreshes, introspects and revokes', async () => {
    const config = await configure()
    const machine = await client.clientCredentialsGrant(config)
    expect(await call(here, machine.access_token)).toBe(200)
    const first = await client.genericGrantRequest(config, EXCHANGE, await exchangeParameters())
    expect(await call(there, first.access_token)).toBe(200)
    const second = await client.refreshTokenGrant(config, first.refresh_token ?? '')
    expect(await call(there, second.access_token)).toBe(200)
    const state = await client.tokenIntrospection(config, second.access_token)
    expect(state).toMatchObject({ active: true, token_type: 'Bearer' })
    await client.tokenRevocation(config, second.refresh_token ?? '')
    for (const gateway of [here, there]) expect(await call(gateway, second.access_token)).toBe(401)
    await expect(
      client.refreshTokenGrant(config, second.refresh_token ?? ''),
    ).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  test('binds tokens to a key', async () => {
    const config = await configure()
    const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))
    const bound = await client.clientCredentialsGrant(config, {}, { DPoP })
    expect(bound.token_type).toBe('dpop')
    const url = new URL(`${here}/orders`)
    const response = await client.fetchProtectedResource(
      ...([config, bound.access_token, url, 'GET', undefined, undefined, { DPoP }] as const),
    )
    expect(response.status).toBe(200)
  })
})

test('a stolen refresh token, used at the other gateway, ends the session at both [S36]', async () => {
  const requestToken = async (gateway: string, params: Record<string, string>) =>
    (await (await postAs(own, `${gateway}/oauth/token`, params)).json()) as Record<string, string>
  const refresh = (gateway: string, refresh_token = '') =>
    requestToken(gateway, { grant_type: 'refresh_token', refresh_token })
  const first = await requestToken(here, { grant_type: EXCHANGE, ...(await exchangeParameters()) })
  const second = await refresh(here, first.refresh_token)
  const third = await refresh(there, second.refresh_token)
  const token = third.access_token ?? ''
  expect(await call(here, token)).toBe(200)
  expect(await refresh(there, first.refresh_token)).toMatchObject({ error: 'invalid_grant' })
  expect(await refresh(here, third.refresh_token)).toMatchObject({ error: 'invalid_grant' })
  for (const gateway of [here, there]) expect(await call(gateway, token)).toBe(401)
})
