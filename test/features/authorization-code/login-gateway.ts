/** A gateway with the authorization code flow whose users sign in at a real provider. */
import { serve } from '../../../src/runtimes/node/index.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { privateJwk } from '../authorization-server/gateway.ts'
import { policy } from './code-policy.ts'

interface LoginProvider {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string }
  close(): Promise<unknown>
}

/** Starts the gateway with the code flow and the sign-in. On Node, it runs in this process. */
export async function startLoginGateway<Provider extends LoginProvider>(
  runtime: 'Node' | 'workerd',
  startAt: (gatewayUrl: string) => Promise<Provider>,
) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const provider = await startAt(url)
  const origin = await startHttpOrigin((_request, response) => response.end('[]'))
  const vars = {
    ...redisVars(redis),
    PUBLIC_URL: url,
    ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
    SIGNING_KEYS: JSON.stringify({ keys: [privateJwk('es', 'ES256', 'ec')] }),
    ISSUERS: JSON.stringify([{ issuer: provider.issuer, audience: url, algorithms: ['ES256'] }]),
    ISSUER_CLIENTS: JSON.stringify([
      {
        issuer: provider.issuer,
        id: provider.client.id,
        secret: provider.client.secret,
        signIn: { name: 'Example', scope: 'openid profile' },
      },
    ]),
  }
  const stop =
    runtime === 'workerd'
      ? (
          await startWorkerd({
            entry: 'test/features/authorization-code/code-worker.ts',
            vars,
            port,
          })
        ).stop
      : (
          await serve({
            policy: policy(),
            env: { ...vars, AUDIT_DATABASE: undefined },
            port,
            graceMs: 1_000,
          })
        ).close
  return {
    url,
    provider,
    reached: origin.requests,
    async close() {
      await stop()
      await Promise.all([origin.close(), provider.close()])
      await redis.close()
    },
  }
}
