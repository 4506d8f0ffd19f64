/** A stub of a gateway: responds by path as a test configures it, and records its requests. */
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

export const METADATA = '/.well-known/oauth-authorization-server'

export interface StubResponse {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: unknown
}

export interface StubRequest {
  readonly method: string | undefined
  readonly path: string
  /** Without the question mark. */
  readonly query: string
  readonly authorization: string | undefined
  readonly body: string
}

const servers: TestServer[] = []

/** Closes every stub gateway that was started. */
export async function closeStubGateways(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()))
}

/**
 * Starts a stub gateway. It responds with `responses` by path, with metadata and tokens as a gateway
 * does unless `responses` replaces them, and with 404 otherwise.
 */
export async function startStubGateway(responses: Record<string, StubResponse>) {
  const requests: StubRequest[] = []
  const defaults: Record<string, StubResponse> = {
    [METADATA]: { body: { token_endpoint: 'https://public.example/oauth/token' } },
    '/oauth/token': { body: { access_token: 'the-access-token', expires_in: 900 } },
  }
  const server = await startHttpServer(async (request, response) => {
    const [path = '', query = ''] = request.url?.split('?') ?? []
    let body = ''
    for await (const chunk of request) body += chunk
    requests.push({
      method: request.method,
      path,
      query,
      authorization: request.headers.authorization,
      body,
    })
    const stub = responses[path] ?? defaults[path] ?? { status: 404, body: 'none' }
    const text = typeof stub.body === 'string' ? stub.body : JSON.stringify(stub.body)
    response.writeHead(stub.status ?? 200, stub.headers).end(text)
  })
  servers.push(server)
  return { url: server.url, requests }
}
