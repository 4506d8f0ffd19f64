/** The official clients for TypeScript, unmodified, from discovery to the end of the login. */

import * as current from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/client'
import * as first from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Login, REDIRECT_URI, startLogin } from './login.ts'
import { createTranscript, type Transcript, transcripts } from './transcript.ts'

interface Tokens {
  access_token: string
  refresh_token?: string
}

/** The part of both versions that this test uses. */
interface AnyTransport {
  finishAuth(...args: unknown[]): Promise<void>
}
interface AnyClient {
  connect(transport: AnyTransport): Promise<void>
  listTools(): Promise<{ tools: readonly { name: string }[] }>
  callTool(call: object): Promise<{ content: readonly { text?: string }[] }>
  close(): Promise<void>
}
interface Sdk {
  readonly Client: new (info: object) => AnyClient
  readonly Transport: new (url: URL, options: object) => AnyTransport
  readonly UnauthorizedError: new () => Error
}

const SDKS: Readonly<Record<string, Sdk>> = {
  '@modelcontextprotocol/sdk 1.x': {
    Client: FirstClient as never,
    Transport: FirstTransport as never,
    UnauthorizedError: first.UnauthorizedError,
  },
  '@modelcontextprotocol/client 2.x': {
    Client: Client as never,
    Transport: current.StreamableHTTPClientTransport as never,
    UnauthorizedError: current.UnauthorizedError as never,
  },
}

/** What an app stores for the SDK. It opens no browser: it keeps the URL that the user must visit. */
class Store {
  readonly redirectUrl = REDIRECT_URI
  clientMetadataUrl: string | undefined
  readonly clientMetadata = {
    client_name: 'test',
    redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    // oidc-provider signs ID tokens with RS256 unless the client asks for another algorithm.
    id_token_signed_response_alg: 'ES256',
  }
  visits: URL[] = []
  information: { client_id: string; client_secret?: string } | undefined
  kept: Tokens | undefined
  verifier = ''
  clientInformation() {
    return this.information
  }
  saveClientInformation(information: { client_id: string }) {
    this.information = information
  }
  tokens() {
    return this.kept
  }
  saveTokens(tokens: Tokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.visits.push(url)
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier() {
    return this.verifier
  }
  invalidateCredentials(scope: string) {
    if (scope === 'all' || scope === 'tokens') this.kept = undefined
  }
}

const PLACES = ['the provider', 'the gateway'] as const
const ROWS = PLACES.flatMap((at) =>
  Object.entries(SDKS).map(([name, sdk]) => [name, at, sdk] as const),
)

const written: Transcript[] = []

describe.each(ROWS)('%s, with the login at %s', (name, at, sdk) => {
  let login: Login
  let transcript: Transcript
  beforeAll(async () => {
    login = await startLogin(at)
    transcript = createTranscript(`${name}, login at ${at}`, login)
    written.push(transcript)
  })
  beforeEach(({ task }) => transcript.step(task.name))
  afterAll(() => login?.close())

  const store = new Store()
  let client: AnyClient
  let transport: AnyTransport

  function create() {
    client = new sdk.Client({ name: 'test', version: '1.0.0' })
    const { fetch } = transcript
    transport = new sdk.Transport(new URL(login.url), { authProvider: store, fetch })
  }
  /** Visits the last URL, and gives the SDK what the provider returned. */
  async function visit() {
    const url = store.visits.at(-1) as URL
    transcript.browser(url)
    const callback = await login.follow(url)
    await transport.finishAuth(
      callback.searchParams.get('code'),
      callback.searchParams.get('iss') ?? undefined,
    )
  }
  const scopesOf = () => String(decodeJwt(store.kept?.access_token ?? '').scope).split(' ')

  test('discovery and registration lead to the login, with the scope and the URL of the server', async () => {
    login.calls.length = 0
    create()
    await expect(client.connect(transport)).rejects.toThrow(sdk.UnauthorizedError)
    const url = store.visits[0] as URL
    expect(url.origin).toBe(login.issuer)
    expect(url.searchParams.get('client_id')).toBe(store.information?.client_id)
    expect(url.searchParams.get('resource')).toBe(login.url)
    expect(url.searchParams.get('scope')).toContain('mcp:use')
    expect(url.searchParams.get('scope')).not.toContain('books:delete')
    expect(url.searchParams.get('code_challenge_method')).toBe('S256')
    expect(login.calls).toEqual([])
  })

  const known =
    at === 'the gateway'
      ? 'an app that has its metadata at a URL uses this URL as its id'
      : 'an app that the issuer knows needs no registration'
  test(known, async () => {
    store.clientMetadataUrl = login.documentUrl
    store.information = login.documentUrl === undefined ? { client_id: login.clientId } : undefined
    create()
    await expect(client.connect(transport)).rejects.toThrow(sdk.UnauthorizedError)
    expect(store.visits.at(-1)?.searchParams.get('client_id')).toBe(login.clientId)
  })

  test('after the login, the client sees and calls only what its scopes permit', async () => {
    await visit()
    create()
    await client.connect(transport)
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['list_shelves'])
    const { content } = await client.callTool({ name: 'list_shelves', arguments: {} })
    expect(content[0]?.text).toBe('fiction, history')
  })

  test('a tool that needs more leads to a login with more scopes, and then works', async () => {
    login.calls.length = 0
    const remove = () => client.callTool({ name: 'remove_book', arguments: { isbn: '1' } })
    // Version 1 repeats its refresh, instead of a login, as long as it has a refresh token.
    if (sdk.Client === (FirstClient as never)) delete store.kept?.refresh_token
    await expect(remove()).rejects.toThrow()
    expect(login.calls).not.toContain('tools/call')
    const url = store.visits.at(-1) as URL
    expect(store.visits).toHaveLength(3)
    expect(url.searchParams.get('scope')?.split(' ')).toEqual(
      expect.arrayContaining(['mcp:use', 'books:delete']),
    )
    await visit()
    expect(scopesOf()).toEqual(expect.arrayContaining(['mcp:use', 'books:delete']))
    expect((await remove()).content[0]?.text).toBe('removed 1')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['list_shelves', 'remove_book'])
  })

  test('a revoked token is replaced by a refresh, without a login', async () => {
    const before = store.kept?.access_token ?? ''
    await login.revoke(before)
    const visits = store.visits.length
    const { content } = await client.callTool({ name: 'list_shelves', arguments: {} })
    expect(content[0]?.text).toBe('fiction, history')
    expect(store.kept?.access_token).not.toBe(before)
    expect(store.visits).toHaveLength(visits)
  })

  test('when the login is ended too, the next call leads to a new one', async () => {
    const { access_token = '', refresh_token = '' } = store.kept ?? {}
    await login.end(refresh_token)
    await login.revoke(access_token)
    login.calls.length = 0
    const visits = store.visits.length
    await expect(client.callTool({ name: 'list_shelves', arguments: {} })).rejects.toThrow()
    expect(store.visits).toHaveLength(visits + 1)
    expect(login.calls).toEqual([])
    await client.close()
  })
})

test('the transcripts contain what the clients did', async () => {
  await expect(transcripts(written)).toMatchFileSnapshot('../../docs/design/mcp-transcripts.md')
})
