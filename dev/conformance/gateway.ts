/** A gateway with TLS in this process, with a Redis and an origin of its own. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Policy } from '../../src/policy/policy.ts'
import { serve } from '../../src/runtimes/node/index.ts'
import { startRedis } from '../redis.ts'
import type { Certificate } from './secure-front.ts'

export interface GatewayOptions {
  readonly certificate: Certificate
  readonly port: number
  readonly policy: Policy
  /** Variables besides those of Redis, the origin and the keys; objects as JSON. */
  readonly variables: Readonly<Record<string, object>>
}

/** Starts the gateway at `https://localhost:<port>`. Returns a function that ends everything. */
export async function startGateway(options: GatewayOptions): Promise<() => Promise<void>> {
  const { certificate, port, policy, variables } = options
  const redis = await startRedis({})
  const origin = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end('[]')
  })
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const signingKey = { ...(await exportJWK(privateKey)), kid: 'gateway', alg: 'ES256' }
  const texts = Object.entries(variables).map(([name, value]) => [name, JSON.stringify(value)])
  const gateway = await serve({
    policy,
    port,
    graceMs: 1_000,
    env: {
      REDIS_URL: redis.url,
      // Otherwise events are written to the output.
      AUDIT_STREAM: 'redis',
      PUBLIC_URL: `https://localhost:${port}`,
      ORIGIN_URL: `http://127.0.0.1:${(origin.address() as AddressInfo).port}`,
      TLS_CERT_FILE: certificate.certificateFile,
      TLS_KEY_FILE: certificate.keyFile,
      SIGNING_KEYS: JSON.stringify({ keys: [signingKey] }),
      ...Object.fromEntries(texts),
    },
  })
  return async () => {
    await gateway.close()
    origin.closeAllConnections()
    origin.close()
    await redis.close()
  }
}
