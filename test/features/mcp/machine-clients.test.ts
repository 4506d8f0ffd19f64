/** Services that use an MCP server for themselves, with the official SDKs and their providers. */
import {
  Client as NextClient,
  ClientCredentialsProvider as NextProvider,
  StreamableHTTPClientTransport as NextTransport,
} from '@modelcontextprotocol/client'
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { createPages } from '../../../src/features/sign-in/rendering/page.ts'
import { SIGNED_IN } from '../../../src/features/sign-in/signed-in.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { type McpGateway, PUBLIC_URL, startMcpGateway } from './gateway.ts'

const RESOURCE = `${PUBLIC_URL}/mcp`

/** No user signs in here. */
const signIn: Feature = {
  name: 'signIn',
  create(parts) {
    SIGNED_IN.offer(parts, {
      renderPage: createPages({}),
      users: { find: async () => ({ signInPath: '/oauth/sign-in' }) },
    })
    return {}
  },
}

let gateway: McpGateway
beforeAll(async () => {
  gateway = await startMcpGateway({}, [authorizationServer(), signIn, authorizationCode()])
  gateway.respondWith(async (incoming, response, body) => {
    const server = new McpServer({ name: 'books', version: '1.0.0' })
    server.registerTool('list_shelves', {}, () => ({
      content: [{ type: 'text', text: 'fiction' }],
    }))
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    await server.connect(transport as never)
    await transport.handleRequest(incoming, response, JSON.parse(body || 'null'))
  })
})
afterAll(() => gateway?.close())

const SDKS = {
  'the SDK 1.x': {
    Client,
    Transport: StreamableHTTPClientTransport,
    Provider: ClientCredentialsProvider,
  },
  'the SDK 2.x': { Client: NextClient, Transport: NextTransport, Provider: NextProvider },
} as const

/** The resources that the SDK has named, as it named them. */
const sent: string[] = []
const send = async (url: string | URL, init?: RequestInit) => {
  const { pathname, search } = new URL(url)
  const { body } = init ?? {}
  if (pathname === '/oauth/token')
    sent.push(new URLSearchParams(String(body)).get('resource') ?? '')
  return gateway.fetch(pathname + search, init)
}

test.each(
  Object.entries(SDKS).flatMap(([name, sdk]) =>
    [undefined, [RESOURCE], [PUBLIC_URL, RESOURCE]].map(
      (audiences) => [name, audiences, sdk] as const,
    ),
  ),
)('%s uses the server with the audiences %j of its client', async (_, audiences, sdk) => {
  const { client, secret = '' } = await gateway.clients.create({
    name: 'nightly job',
    grants: ['client_credentials'],
    roles: ['reader'],
    ...(audiences && { audiences: [...audiences] }),
  })
  const authProvider = new sdk.Provider({
    clientId: client.id,
    clientSecret: secret,
    expectedIssuer: PUBLIC_URL,
  })
  const transport = new sdk.Transport(new URL(RESOURCE), { authProvider, fetch: send } as never)
  const user = new sdk.Client({ name: 'test', version: '1.0.0' })
  sent.length = 0
  await user.connect(transport as never)
  const { content } = await user.callTool({ name: 'list_shelves', arguments: {} })
  expect(content).toEqual([{ type: 'text', text: 'fiction' }])
  await user.close()
  expect(sent).toEqual([RESOURCE])
  const token = authProvider.tokens()?.access_token ?? ''
  expect(decodeJwt(token).aud).toBe(RESOURCE)
})
