/** A stand-in for an issuer that verifies its tokens itself. A test chooses each of its responses. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { startHttpServer } from '../../harness/http-server.ts'

export const CLIENT = { id: 'orders api', secret: 'a:secret+with spaces & 100%' }

export interface ReceivedCall {
  readonly path: string
  readonly authorization: string | undefined
  readonly form: Readonly<Record<string, string>>
}

export type Answer = (response: ServerResponse, call: ReceivedCall) => unknown

export const json =
  (body: unknown, status = 200): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

/** Accepts the request and never responds. */
export const hanging: Answer = () => {}

export type IntrospectionProvider = Awaited<ReturnType<typeof startIntrospectionProvider>>

/** Starts the issuer. Its metadata names `/introspect` and `/userinfo`. */
export async function startIntrospectionProvider() {
  const calls: ReceivedCall[] = []
  let metadataCalls = 0
  const provider = { answer: json({ active: false }) as Answer }
  const server = await startHttpServer(async (request: IncomingMessage, response) => {
    const path = request.url ?? ''
    if (path.startsWith('/.well-known/')) {
      metadataCalls += 1
      return json({
        issuer: server.url,
        jwks_uri: `${server.url}/jwks`,
        introspection_endpoint: `${server.url}/introspect`,
        userinfo_endpoint: `${server.url}/userinfo`,
      })(response, { path, authorization: undefined, form: {} })
    }
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    const call = { path, authorization: request.headers.authorization, form }
    calls.push(call)
    return provider.answer(response, call)
  })
  const issuer = server.url
  return Object.assign(provider, {
    issuer,
    calls: calls as readonly ReceivedCall[],
    metadataCalls: () => metadataCalls,
    /** The claims of an active token, with which a reader is admitted. */
    claims: { active: true, iss: issuer, sub: 'alice', aud: 'orders', roles: ['reader'] },
    close: () => server.close(),
  })
}

/** The variables for an issuer with introspection. */
export const clientsFor = (issuer: string, more: object = {}) => ({
  ISSUER_CLIENTS: JSON.stringify([{ issuer, ...CLIENT, ...more }]),
})
