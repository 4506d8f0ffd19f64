/**
 * Another spelling of a protected resource does not evade its entry. The server uses the official SDK
 * and reads files with `fileURLToPath`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CompleteRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type McpGateway, PUBLIC_URL, request, startMcpGateway } from './gateway.ts'

const SECRET = 'the plan'
const root = mkdtempSync(join(tmpdir(), 'portcullis-'))
const base = pathToFileURL(root).href
const plan = `${base}/private/plan.txt`
const restricted = { permission: 'books:delete' }

/** What the methods of the server have received. */
const reached: string[] = []

function createServer(listed: readonly string[]): Server {
  const server = new Server(
    { name: 'files', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true }, completions: {} } },
  )
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    reached.push(uri)
    return { contents: [{ uri, text: readFileSync(fileURLToPath(uri), 'utf8') }] }
  })
  const record = (uri: string) => {
    reached.push(uri)
    return {}
  }
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => record(params.uri))
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => record(params.uri))
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => {
    record('uri' in params.ref ? params.ref.uri : params.ref.name)
    return { completion: { values: ['plan.txt'] } }
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: listed.map((uri) => ({ uri, name: uri })),
  }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: listed.map((uri) => ({ uriTemplate: `${uri}/{name}`, name: uri })),
  }))
  return server
}

/** Spellings of the plan. `fileURLToPath` resolves those that begin with `file:` to the same file. */
const SPELLINGS: readonly string[] = [
  plan.replace('/private/', '/%70rivate/'),
  plan.replace('/private/', '/priv%61te/'),
  plan.replace('/plan.txt', '/pl%61n.txt').replace('/private/', '/pri%76ate/'),
  plan.replace('/private/', '//private/'),
  plan.replace('/private/', '///private/'),
  plan.replace('/private/', '/./private/'),
  plan.replace('/private/', '/public/../private/'),
  plan.replace('/private/', '/public/%2e%2e/private/'),
  plan.replace('/private/', '/public/%2E./private/'),
  plan.replace('/private/', '\\private\\'),
  plan.replace('/private/', '/private%2f'),
  plan.replace('/private/', '/private%5c'),
  plan.replace('/private/', '/%2570rivate/'),
  plan.replace('/private/', '/pri\tvate/'),
  plan.replace('/private/', '/pri\nvate/'),
  plan.replace('/private/', '/private\u2215'),
  plan.replace('file:', 'FILE:'),
  plan.replace('file:', 'File:'),
  plan.replace('file:///', 'file:/'),
  plan.replace('file:///', 'file:'),
  plan.replace('file:///', 'file:////'),
  plan.replace('file:///', 'file://localhost/'),
  plan.replace('file:///', 'file://LOCALHOST/'),
  plan.replace('file:///', 'file://user@localhost/'),
  plan.replace('file:///', 'file:\\\\\\'),
  ` ${plan}`,
  `${plan} `,
  `\u0000${plan}`,
  `${plan}?`,
  `${plan}?x=1`,
  `${plan}#x`,
  `${plan}#`,
  `${plan}?x#y`,
  plan.replace('/private/', '/private?/../private/'),
  `${base}/private`,
  `${base}/private?x`,
  `${base}/Private/plan.txt`,
  `${base}/exact.txt?`,
  `${base}/exact.txt#x`,
  `${base}/ex%61ct.txt`,
  `${base}//exact.txt`,
  `${base}/exact.txt/`,
  `${base}/a%2Cb/plan.txt`,
  `${base}/a,b/pl%61n.txt`,
]

let gateway: McpGateway
let client: Client
beforeAll(async () => {
  for (const folder of ['private', 'public', 'a,b']) mkdirSync(join(root, folder))
  for (const file of ['private/plan.txt', 'exact.txt', 'a,b/plan.txt'])
    writeFileSync(join(root, file), SECRET)
  writeFileSync(join(root, 'public/a b.txt'), 'for everybody')
  gateway = await startMcpGateway({
    resources: {
      '*': true,
      [`${base}/private/*`]: restricted,
      [`${base}/exact.txt`]: restricted,
      [`${base}/a,b/*`]: restricted,
    },
  })
  gateway.respondWith(async (incoming, response, body) => {
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    await createServer([`${base}/public/a%20b.txt`, ...SPELLINGS]).connect(transport)
    await transport.handleRequest(incoming, response, JSON.parse(body || 'null'))
  })
  client = await connected('reader')
})
afterAll(async () => {
  await client?.close()
  await gateway?.close()
  rmSync(root, { recursive: true, force: true })
})
beforeEach(() => void reached.splice(0))

async function connected(role: string): Promise<Client> {
  const sdk = new Client({ name: 'test', version: '1.0.0' })
  const headers = { Authorization: `Bearer ${await gateway.token('alice', [role])}` }
  const transport = new StreamableHTTPClientTransport(new URL(`${PUBLIC_URL}/mcp`), {
    requestInit: { headers },
    fetch: async (url, init) => gateway.fetch(new URL(url).pathname, init),
  })
  await sdk.connect(transport as Parameters<typeof sdk.connect>[0])
  return sdk
}

describe('another spelling of a protected resource [S80]', () => {
  test.each(SPELLINGS)('is not read: %j', async (uri) => {
    const read = await client.readResource({ uri }).then(JSON.stringify, String)
    expect(read).not.toContain(SECRET)
    expect(reached).toEqual([])
  })

  test.each(['resources/subscribe', 'resources/unsubscribe', 'complete', 'listen'] as const)(
    'does not reach the server by %s',
    async (method) => {
      for (const uri of SPELLINGS) {
        const call =
          method === 'complete'
            ? request('completion/complete', {
                ref: { type: 'ref/resource', uri: `${uri}{name}` },
                argument: { name: 'name', value: '' },
              })
            : method === 'listen'
              ? request('subscriptions/listen', {
                  notifications: { resourceSubscriptions: [`${base}/public/a.txt`, uri] },
                })
              : request(method, { uri })
        const response = await gateway.send(call, {
          Accept: 'application/json, text/event-stream',
        })
        // Control characters of JSON texts are refused before.
        expect([uri, response.status]).toEqual([uri, uri.includes('\0') ? 400 : 403])
      }
      expect(reached).toEqual([])
    },
  )

  test('does not appear in lists, and templates of it do not', async () => {
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual([`${base}/public/a%20b.txt`])
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      `${base}/public/a%20b.txt/{name}`,
    ])
  })

  test('is a template that a completion could fill in with its name', async () => {
    for (const uri of [`${base}/{path}`, `${base}/{+path}`, `${base}/priv{rest}`, '{+uri}'])
      expect(
        await gateway
          .send(
            request('completion/complete', {
              ref: { type: 'ref/resource', uri },
              argument: { name: 'path', value: 'p' },
            }),
          )
          .then(({ status }) => status),
      ).toBe(403)
    expect(reached).toEqual([])
  })
})

test('a resource in its normal form is read, by those who may', async () => {
  const uri = `${base}/public/a%20b.txt`
  expect(JSON.stringify(await client.readResource({ uri }))).toContain('for everybody')
  const librarian = await connected('librarian')
  for (const own of [plan, `${base}/exact.txt`, `${base}/a,b/plan.txt`])
    expect(JSON.stringify(await librarian.readResource({ uri: own }))).toContain(SECRET)
  await librarian.close()
})
