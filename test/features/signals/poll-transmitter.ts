/** A transmitter that keeps its events until they are acknowledged (RFC 8936). */
import { startHttpServer } from '../../harness/http-server.ts'

export interface PollRequest {
  readonly maxEvents?: number
  readonly returnImmediately?: boolean
  readonly ack?: readonly string[]
  readonly setErrs?: Readonly<Record<string, { readonly err: string }>>
}

/** Demands `Bearer <token>`. `/token` gives it to the client `gateway` with the secret `s3cr3t`. */
export async function startPollTransmitter() {
  const kept = new Map<string, string>()
  const requests: PollRequest[] = []
  const state = { token: 'token-1', tokenRequests: 0, alwaysHasMore: false, extra: '' }
  const server = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    response.setHeader('Content-Type', 'application/json')
    if (request.url === '/token') {
      state.tokenRequests += 1
      const isClient = request.headers.authorization === `Basic ${btoa('gateway:s3cr3t')}`
      response.statusCode = isClient && body === 'grant_type=client_credentials' ? 200 : 401
      return void response.end(JSON.stringify({ access_token: state.token, expires_in: 3_600 }))
    }
    if (request.headers.authorization !== `Bearer ${state.token}`) {
      response.statusCode = 401
      return void response.end()
    }
    const polled = JSON.parse(body) as PollRequest
    requests.push(polled)
    for (const id of [...(polled.ack ?? []), ...Object.keys(polled.setErrs ?? {})]) kept.delete(id)
    const sets = Object.fromEntries([...kept].slice(0, polled.maxEvents))
    const moreAvailable = state.alwaysHasMore || kept.size > Object.keys(sets).length
    response.end(JSON.stringify({ sets, moreAvailable, extra: state.extra }))
  })
  return {
    url: `${server.url}/events`,
    tokenEndpoint: `${server.url}/token`,
    /** The events that are not acknowledged, by `jti`. */
    kept,
    requests,
    state,
    close: () => server.close(),
  }
}
