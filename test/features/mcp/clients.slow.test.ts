/** The official clients for TypeScript and Python, unmodified, from discovery to the end of the login. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Login, startLogin } from './login.ts'
import { installPython, PYTHON, runPython } from './python.ts'
import { type AnyClient, type AnyTransport, SDKS, Store } from './sdk-clients.ts'
import { createTranscript, type Transcript, transcripts } from './transcript.ts'

const PLACES = ['the provider', 'the gateway'] as const
const ROWS = PLACES.flatMap((at) =>
  Object.entries(SDKS).map(([name, sdk]) => [name, at, sdk] as const),
)

const DOCUMENT = join(import.meta.dirname, '../../../docs/design/mcp-transcripts.md')

/** All parts of the document about the client for Python, without the last line break. */
const PYTHON_PARTS = /(?<=\n)## Python .*(?=\n$)/s

const written: Transcript[] = []
const python = await installPython()

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

describe.skipIf(python === undefined).each(PLACES)(`${PYTHON}, with the login at %s`, (at) => {
  test('registration or known client, login, call, more scopes, refresh, and a login after the revocation', async () => {
    const login = await startLogin(at)
    const transcript = createTranscript(`${PYTHON}, login at ${at}`, login)
    written.push(transcript)
    const { results, visits, errors } = await runPython(
      python?.interpreter ?? '',
      login,
      transcript,
    )
    await login.close()
    expect(errors).toBe('')
    const listed = [{ tools: ['list_shelves'] }, { result: 'fiction, history' }]
    expect(results).toEqual([
      ...listed,
      { client: expect.any(String) },
      ...listed,
      { client: login.clientId },
      { result: 'removed 1' },
      { result: 'fiction, history' },
      { refreshed: true },
      { result: 'fiction, history' },
    ])
    expect(results[2]).not.toEqual({ client: login.clientId })
    for (const url of visits) {
      expect(url.origin).toBe(login.issuer)
      expect(url.searchParams.get('resource')).toBe(login.url)
    }
    const scopes = visits.map(({ searchParams }) => searchParams.get('scope')?.split(' '))
    expect(scopes).toHaveLength(4)
    expect(scopes[1]).not.toContain('books:delete')
    expect(scopes[2]).toEqual(expect.arrayContaining(['mcp:use', 'books:delete']))
  })
})

test('the transcripts contain what the clients did', async () => {
  const parts = written.map((one) => one.text())
  // The part of the client for Python cannot be compared where it cannot be installed.
  const kept =
    python === undefined ? (readFileSync(DOCUMENT, 'utf8').match(PYTHON_PARTS) ?? []) : []
  await expect(transcripts([...parts, ...kept])).toMatchFileSnapshot(DOCUMENT)
})
