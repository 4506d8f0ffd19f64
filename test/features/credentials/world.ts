/** A gateway with credentials, an origin that demands them, and a provider that issues tokens for it. */
import type { IncomingMessage, RequestListener } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { type GatewayOptions, startGateway } from '../../harness/gateway.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { JWT_RESOURCE, startOidcProvider } from '../../harness/oidc-provider.ts'
import policy from './policy.ts'

/** Ends with characters that a query must encode. */
export const SECRET = 'key-of-"the"-gateway+/&='

/** Longer than a test moves the clock. */
const TOKEN_SECONDS = 86_400

export interface WorldOptions extends Pick<GatewayOptions, 'runtime'> {
  /** Default {@link SECRET}. */
  readonly secret?: string
}

export type World = Awaited<ReturnType<typeof startWorld>>

export async function startWorld({ runtime, secret = SECRET }: WorldOptions = {}) {
  const provider = await startOidcProvider()
  const proxy = await startFaultProxy({
    target: { host: '127.0.0.1', port: Number(new URL(provider.url).port) },
  })
  /** Tokens that the origin no longer accepts. */
  const refused = new Set<string>()
  const state = { refusesAll: false }
  const requests: IncomingMessage[] = []

  async function isAccepted({ url = '', headers }: IncomingMessage): Promise<boolean> {
    const { authorization = '' } = headers
    const { pathname, searchParams } = new URL(url, 'http://origin')
    if (state.refusesAll) return false
    if (/^\/(?:header|both|mcp)/.test(pathname)) return headers['x-api-key'] === SECRET
    if (pathname.startsWith('/bearer')) return authorization === `Bearer ${SECRET}`
    if (pathname.startsWith('/basic'))
      return authorization === `Basic ${Buffer.from(`portcullis:${SECRET}`).toString('base64')}`
    if (pathname.startsWith('/query')) return searchParams.getAll('api_key').join() === SECRET
    if (pathname === '/plain') return headers.authorization === undefined
    const token = authorization.replace('Bearer ', '')
    if (refused.has(token)) return false
    const keys = createRemoteJWKSet(new URL(`${provider.url}/jwks`))
    const options = { issuer: provider.issuer, audience: JWT_RESOURCE }
    return jwtVerify(token, keys, options).then(
      () => true,
      () => false,
    )
  }

  const answer: RequestListener = async (request, response) => {
    if (!(await isAccepted(request)))
      response
        .writeHead(401, { 'WWW-Authenticate': 'Bearer realm="the origin"' })
        .end('the origin refuses the key')
    else if (request.url?.includes('/log-in')) {
      const { search, searchParams } = new URL(request.url, 'http://origin')
      const next = encodeURIComponent(`/orders${search}`)
      response
        .writeHead(302, {
          Location: `/query/log-in?next=${next}&again=${encodeURIComponent(next).toLowerCase()}`,
          'Set-Cookie': [`last="${searchParams.get('api_key')}"; Path=/`, `next=${next}`, 'kept=1'],
          'X-Query': `?${decodeURIComponent(search)}`,
        })
        .end()
    } else if (request.url?.includes('/moved'))
      response
        .writeHead(302, { Location: request.url.replace('/moved', '/there'), ETag: '"1"' })
        .end(`<a href="${request.url.replace('/moved', '/there')}">Moved</a>`)
    else if (request.url === '/mcp')
      response
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} }))
    else response.writeHead(200).end('[]')
  }
  const origin = await startHttpServer((request, response) => {
    requests.push(request)
    request.resume().on('end', () => answer(request, response))
  })
  const gateway = await startGateway({
    ...(runtime !== undefined && { runtime }),
    policy,
    entry: 'test/features/credentials/worker.ts',
    signs: true,
    origin,
    variables: {
      ORIGIN_URL_API: origin.url,
      ORIGIN_SECRET_API: secret,
      ORIGIN_SECRET_CLIENT: provider.client.secret,
      ORIGIN_TOKEN_URL_API: `${proxy.url}/token`,
    },
  })
  const exp = Math.floor(Date.now() / 1_000) + TOKEN_SECONDS
  const token = await gateway.token({ claims: { roles: ['reader'], exp } })
  /** The caller sends a credential in each place, and a session of its own. */
  const init = (options: RequestInit = {}): RequestInit => ({
    redirect: 'manual',
    ...options,
    headers: {
      authorization: `Bearer ${token}`,
      'cf-connecting-ip': '192.0.2.1',
      'x-api-key': 'of-the-caller',
      ...options.headers,
    },
  })
  const app = runtime === undefined ? gateway.isolate() : undefined
  return {
    provider,
    proxy,
    gateway,
    /** The requests that reached the origin. */
    requests,
    refused,
    state,
    token,
    /** Sends a request of a caller with the role `reader`. */
    send: async (path: string, options?: RequestInit): Promise<Response> =>
      app === undefined
        ? fetch(gateway.url + path, init(options))
        : app.fetch(new Request(`https://gateway.test${path}`, init(options)), {}, CONTEXT),
    /** Starts another isolate, with other variables. Returns the function that sends a request to it. */
    isolate(variables: Readonly<Record<string, string>>) {
      const other = gateway.isolate(undefined, variables)
      return async (path: string): Promise<Response> =>
        other.fetch(new Request(`https://gateway.test${path}`, init()), {}, CONTEXT)
    },
    /** Returns how often a token was fetched. */
    fetches: () => provider.calls.filter((path) => path === '/token').length,
    async close() {
      await gateway.close()
      await proxy.close()
      await provider.close()
    },
  }
}

const CONTEXT = { waitUntil() {}, passThroughOnException() {}, props: {} }
