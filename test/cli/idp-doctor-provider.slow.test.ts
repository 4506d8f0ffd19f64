/** `portcullis idp doctor` with tokens of a real OpenID Provider. */
import { expect, onTestFinished, test } from 'vitest'
import {
  JWT_RESOURCE,
  type OidcProviderOptions,
  OPAQUE_RESOURCE,
  OTHER_RESOURCE,
  startOidcProvider,
} from '../harness/oidc-provider.ts'
import { runHere } from './command-here.ts'

async function start(options: OidcProviderOptions = {}) {
  const provider = await startOidcProvider({ claims: { roles: ['reader'] }, ...options })
  onTestFinished(() => provider.close())
  const { issuer } = provider
  return { provider, entry: { issuer, audience: JWT_RESOURCE } }
}

/** Returns the first line, the exit code, and the suggested fields. */
async function examine(token: string, entries: readonly object[], ...args: readonly string[]) {
  const command = ['idp', 'doctor', '-', '--issuers', JSON.stringify(entries), ...args, '--json']
  const { code, stdout } = await runHere(command, { input: token })
  const { mistake, suggestion } = JSON.parse(stdout)
  return { code, mistake, fields: suggestion?.fields, verdict: suggestion?.verdict }
}

test('tokens of users and of clients are accepted', async () => {
  const { provider, entry } = await start()
  const { accessToken } = await provider.logIn()
  for (const token of [accessToken, await provider.clientToken()])
    expect(await examine(token, [entry])).toMatchObject({ code: 0, mistake: null })
})

test('only the metadata and the key set of the provider are fetched', async () => {
  const { provider, entry } = await start()
  const token = await provider.clientToken()
  const before = provider.calls.length
  await examine(token, [entry])
  expect(provider.calls.slice(before)).toEqual(['/.well-known/openid-configuration', '/jwks'])
})

test('the entry of a new provider is composed from a token', async () => {
  const { provider, entry } = await start()
  const token = await provider.clientToken()
  const composed = { code: 0, mistake: null, fields: entry, verdict: 'accepted' }
  expect(await examine(token, [], '--issuer', provider.issuer)).toEqual(composed)
})

test('an ID token, also where its audience and type are accepted', async () => {
  const { provider, entry } = await start()
  const { idToken } = await provider.logIn()
  const entries = [entry, { ...entry, audience: provider.client.id, typ: 'none', clients: ['*'] }]
  for (const one of entries) {
    const { mistake, fields } = await examine(idToken, [one])
    expect(mistake).toMatch(/^token use: this is an ID token \(it has nonce/)
    expect(fields).toBeUndefined()
  }
})

test('a token for another resource, and an opaque one', async () => {
  const { provider, entry } = await start()
  const other = await examine(await provider.clientToken(OTHER_RESOURCE), [entry])
  expect(other.mistake).toBe(
    `aud: the token is for "${OTHER_RESOURCE}", and ISSUERS[0] expects "${JWT_RESOURCE}"`,
  )
  expect(other).toMatchObject({ fields: { audience: OTHER_RESOURCE }, verdict: 'accepted' })
  const opaque = await examine(await provider.clientToken(OPAQUE_RESOURCE), [entry])
  expect(opaque.mistake).toMatch(/^form: the token is opaque, not a JWT/)
})

test('a token of a key that was replaced', async () => {
  const { provider, entry } = await start()
  const token = await provider.clientToken()
  await provider.rotate()
  const { code, mistake, fields } = await examine(token, [entry])
  expect({ code, fields }).toEqual({ code: 1, fields: undefined })
  expect(mistake).toMatch(/^key: the key "\w+" of the token is not in the key set$/)
})

test('a provider that names another issuer', async () => {
  const { provider } = await start({ issuerAt: (url) => `${url}/` })
  const token = await provider.clientToken()
  const entry = { issuer: provider.url, audience: JWT_RESOURCE }
  const { mistake, fields, verdict } = await examine(token, [entry])
  expect(mistake).toMatch(/^iss: the issuer "\S+\/" ends with a slash, and that of ISSUERS\[0\]/)
  expect({ fields, verdict }).toEqual({ fields: { issuer: provider.issuer }, verdict: 'accepted' })
})
