/** An MCP server of the SDK behind the gateway on Node, and `oidc-provider`, where users log in. */
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { decodeJwt } from 'jose'
import * as z from 'zod'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { mcp } from '../../../src/features/mcp/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { createKey } from '../../harness/issuer.ts'
import { ProviderOf, withInstantLogin } from '../../harness/oidc-package.ts'
import { freePort } from '../../harness/process.ts'
import { startTestRedis } from '../../harness/redis.ts'
import { startProvider as startUserProvider } from '../sign-in/provider.ts'
import { createUserAgent } from '../sign-in/user-agent.ts'
import { hostDocument } from './document-host.ts'

export const REDIRECT_URI = 'http://127.0.0.1:9/callback'
/** A public client that the provider knows. */
const CLIENT_ID = 'test-app'
const LOGIN_PATH = '/log-in/'
const SCOPES = 'mcp:use books:delete'
const LIFE_SECONDS = 600

/** Starts a server with two tools. `calls` gets the method of each message that reaches it. */
async function startMcpServer(calls: string[]) {
  const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
  const server = await startHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const message = body === '' ? undefined : JSON.parse(body)
    calls.push(message === undefined ? (request.method ?? '') : message.method)
    const books = new McpServer({ name: 'books', version: '1.0.0' })
    books.registerTool('list_shelves', {}, () => text('fiction, history'))
    books.registerTool('remove_book', { inputSchema: { isbn: z.string() } }, ({ isbn }) =>
      text(`removed ${isbn}`),
    )
    books.registerTool('run_shell', {}, () => text('never'))
    const transport = new StreamableHTTPServerTransport({})
    response.on('close', () => books.close())
    await books.connect(transport as never)
    await transport.handleRequest(request, response, message)
  })
  return server
}

interface LoginContext {
  readonly oidc: {
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
    readonly provider: {
      readonly Grant: new (
        owner: object,
      ) => {
        addOIDCScope(scope: string): void
        addResourceScope(resource: string, scope: string): void
        save(): Promise<unknown>
      }
    }
  }
}

/** Starts a provider with dynamic registration. The user `alice` logs in and consents at once. */
async function startProvider(resource: string) {
  const { privateJwk } = await createKey('provider')
  let handle: RequestListener = (_, response) => response.writeHead(503).end()
  const server = await startHttpServer((request, response) => handle(request, response))
  const configuration = {
    jwks: { keys: [privateJwk] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    // Registered clients may request only the scopes of their registration.
    clients: [
      {
        client_id: CLIENT_ID,
        redirect_uris: [REDIRECT_URI],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
    ],
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    pkce: { required: () => true },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => LOGIN_PATH + uid },
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId }),
    }),
    // Otherwise only clients that ask for `offline_access` can refresh.
    issueRefreshToken: () => true,
    async loadExistingGrant({ oidc }: LoginContext) {
      const { clientId } = oidc.client
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope(`openid offline_access ${SCOPES}`)
      grant.addResourceScope(resource, SCOPES)
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: SCOPES,
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    ttl: Object.fromEntries(
      ['AccessToken', 'Grant', 'IdToken', 'Interaction', 'RefreshToken', 'Session'].map((kind) => [
        kind,
        LIFE_SECONDS,
      ]),
    ),
  }
  const provider = new ProviderOf(server.url, configuration)
  handle = withInstantLogin(provider, LOGIN_PATH)
  return server
}

/** Follows an authorization URL as a browser does, and allows the access. Returns where it ends. */
async function follow(start: string | URL): Promise<URL> {
  const browser = createUserAgent()
  const page = await browser.visit(String(start), RETURNED)
  if (RETURNED.test(page.url)) return new URL(page.url)
  const [, request = ''] = /name="request" value="([^"]+)"/.exec(page.text) ?? []
  if (request === '') throw new Error(`${page.status} ${page.path.join(' ')}: ${page.text}`)
  const decided = await browser.visit(new URL('/oauth/consent', page.url).href, RETURNED, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
    },
    body: new URLSearchParams({ request, decision: 'allow' }).toString(),
  })
  return new URL(decided.url)
}

const RETURNED = /^http:\/\/127\.0\.0\.1:9\/callback/

export type Login = Awaited<ReturnType<typeof startLogin>>

/** `at`: where clients log users in. */
export async function startLogin(at: 'the provider' | 'the gateway') {
  /** The method of each message that reached the MCP server. */
  const calls: string[] = []
  const server = await startMcpServer(calls)
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const resource = `${publicUrl}/mcp`
  const own = at === 'the gateway' ? await startUserProvider(publicUrl) : undefined
  const other = own === undefined ? await startProvider(resource) : undefined
  const issuer = own?.issuer ?? other?.url ?? ''
  const hosted =
    own &&
    (await hostDocument((client_id) => ({
      client_id,
      client_name: 'Test',
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    })))
  const clientId = hosted?.url ?? CLIENT_ID
  const signing = await createKey('gateway')
  const policy = definePolicy({
    roles: { librarian: ['mcp:use', 'books:*'] },
    limits: {},
    abuse: { bans: false },
    features:
      own === undefined
        ? []
        : [
            authorizationServer(),
            signIn({ roles: ['librarian'], requestsPerMinute: 10_000 }),
            authorizationCode({ registration: true, documents: { loopback: true } }),
          ],
    routes: [
      ...mcp({
        path: '/mcp',
        permission: 'mcp:use',
        tools: {
          list_shelves: true,
          remove_book: {
            permission: 'books:delete',
            arguments: z.strictObject({ isbn: z.string() }),
          },
        },
      }),
    ],
  })
  const gateway = await serve({
    policy,
    port,
    graceMs: 100,
    env: {
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      // Otherwise events are written to the output.
      AUDIT_STREAM: 'redis',
      PUBLIC_URL: publicUrl,
      ORIGIN_URL: server.url,
      SIGNING_KEYS: JSON.stringify({ keys: [signing.privateJwk] }),
      ISSUERS: JSON.stringify([
        {
          issuer,
          audience: own === undefined ? resource : publicUrl,
          idTokenAlgorithm: 'ES256',
        },
      ]),
      ...(own !== undefined && {
        ISSUER_CLIENTS: JSON.stringify([
          {
            issuer,
            id: own.client.id,
            secret: own.client.secret,
            signIn: { name: 'Example', scope: 'openid profile' },
          },
        ]),
      }),
    },
  })
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const revocations = createRevocations(rest, Date.now)
  return {
    url: resource,
    /** The issuer that clients use. */
    issuer: own === undefined ? issuer : publicUrl,
    /** A client that the issuer knows, or whose id is the URL of its metadata. */
    clientId,
    /** The URL of the client's metadata, where the issuer reads them. */
    documentUrl: hosted?.url,
    calls,
    follow,
    /** Revokes one access token at the gateway. */
    async revoke(token: string) {
      const { iss = '', jti = '', exp = 0 } = decodeJwt(token)
      await revocations.revokeToken({ tokenIdHash: await tokenIdHash(iss, jti), untilSeconds: exp })
    },
    /** Ends a refresh token at its issuer (RFC 7009). */
    async end(token: string) {
      const path = own === undefined ? `${issuer}/token/revocation` : `${publicUrl}/oauth/revoke`
      const form = new URLSearchParams({ token, client_id: clientId })
      const response = await fetch(path, { method: 'POST', body: form })
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    },
    async close() {
      await gateway.close()
      await Promise.all([server, own, other, hosted].map((each) => each?.close()))
      await redis.close()
    },
  }
}
