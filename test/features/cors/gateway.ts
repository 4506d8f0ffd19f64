/** The gateway of this folder on each runtime, with an origin that records its requests. */
import { once } from 'node:events'
import { AUDIENCE, createKey, ISSUER, mint, type TokenOptions } from '../../harness/issuer.ts'
import { freePort, ROOT, run } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { startWorkerd } from '../../origin/workerd.ts'

const NODE = `${ROOT}/node_modules/node/bin/node`

export const RUNTIMES = ['workerd', 'Node'] as const

export type CorsGateway = Awaited<ReturnType<typeof startGateway>>

/** Starts a gateway whose policy allows the pages of `page`. */
export async function startGateway(runtime: (typeof RUNTIMES)[number], page: string) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const origin = await startHttpOrigin((request, response) => {
    // Headers that only the gateway may send.
    response.setHeader('Access-Control-Allow-Origin', 'https://evil.example')
    response.setHeader('Access-Control-Allow-Credentials', 'true')
    response.setHeader('ETag', '"1"')
    response.setHeader('X-Internal', 'secret')
    response.end(JSON.stringify({ method: request.method, cookie: request.headers.cookie ?? null }))
  })
  const key = await createKey('idp')
  const vars = {
    ...redisVars(redis),
    PAGE: page,
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
    ]),
  }
  const running =
    runtime === 'workerd'
      ? await startWorkerd({ entry: 'test/features/cors/worker.ts', vars })
      : await startOnNode(vars)
  return {
    url: `http://127.0.0.1:${running.port}`,
    reached: origin.requests,
    token: (options: TokenOptions = {}) => mint(key, options),
    /** Ends Redis. */
    async breakRedis() {
      await redis.close()
    },
    async close() {
      await Promise.all([running.stop(), origin.close()])
      await redis.close()
    },
  }
}

async function startOnNode(vars: Readonly<Record<string, string>>) {
  const port = await freePort()
  const command = [NODE, 'test/features/cors/node-process.ts'] as const
  const { child, stop } = await run(command, { ...vars, PORT: String(port) }, 'listening')
  return {
    port,
    async stop() {
      await stop()
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
