/** The gateway of this folder on each runtime, with an origin that records its requests. */
import { RUNTIMES, startGateway as startWith } from '../../harness/gateway.ts'
import { AUDIENCE } from '../../harness/issuer.ts'

export { RUNTIMES }

export type CorsGateway = Awaited<ReturnType<typeof startGateway>>

/** Starts a gateway whose policy allows the pages of `page`. */
export async function startGateway(runtime: (typeof RUNTIMES)[number], page: string) {
  const entry = runtime === 'workerd' ? 'worker' : 'node-process'
  const gateway = await startWith({
    runtime: runtime === 'workerd' ? runtime : 'process',
    entry: `test/features/cors/${entry}.ts`,
    audience: [AUDIENCE],
    variables: { PAGE: page },
    origin(request, response) {
      // Headers that only the gateway may send.
      response.setHeader('Access-Control-Allow-Origin', 'https://evil.example')
      response.setHeader('Access-Control-Allow-Credentials', 'true')
      response.setHeader('ETag', '"1"')
      response.setHeader('X-Internal', 'secret')
      const { method, headers } = request
      response.end(JSON.stringify({ method, cookie: headers.cookie ?? null }))
    },
  })
  const { url, requests: reached, token, close } = gateway
  return { url, reached, token, close, breakRedis: gateway.redis.close }
}
