/** A gateway with sign-in on each runtime, its provider, and an origin that records its requests. */
import { serve } from '../../src/node/index.ts'
import type { SignInDefinition } from '../../src/sign-in/definition.ts'
import { freePort } from '../harness/process.ts'
import { redisVars, startTestRedis } from '../harness/redis.ts'
import { startHttpOrigin } from '../proxy/origin-server.ts'
import { startWorkerd } from '../proxy/workerd.ts'
import { policyFor } from './policy.ts'
import { startProvider, type TestProvider } from './provider.ts'

export const RUNTIMES = ['workerd', 'Node'] as const

export type SignInGateway = Awaited<ReturnType<typeof startGateway>>

export interface GatewayOptions {
  readonly runtime?: (typeof RUNTIMES)[number]
  readonly definition?: SignInDefinition
  readonly accessTokenSeconds?: number
  readonly scope?: string
  /** Starts further providers. */
  readonly more?: (url: string) => Promise<{ provider: TestProvider; name: string }[]>
}

/** Starts everything. On Node, the gateway runs in this process. */
export async function startGateway({
  runtime = 'Node',
  definition = {},
  accessTokenSeconds,
  scope = 'openid profile',
  more = async () => [],
}: GatewayOptions = {}) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const provider = await startProvider(url, accessTokenSeconds)
  const all = [{ provider, name: 'Example' }, ...(await more(url))]
  const origin = await startHttpOrigin((request, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.setHeader('Set-Cookie', ['theme=dark', '__Host-portcullis-session=of-the-origin'])
    const { url: path, method, headers } = request
    const seen = { path, method, subject: headers['x-auth-subject'], cookie: headers.cookie }
    response.end(`<title>Orders</title><pre>${JSON.stringify(seen)}</pre>`)
  })
  const vars = {
    ...redisVars(redis),
    PUBLIC_URL: url,
    ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
    ISSUERS: JSON.stringify(all.map(({ provider: { issuer } }) => ({ issuer, audience: url }))),
    ISSUER_CLIENTS: JSON.stringify(
      all.map(({ provider: { issuer, client }, name }) => ({
        issuer,
        ...client,
        signIn: { name, scope },
      })),
    ),
  }
  const start = () => startOn(runtime, { definition, vars, port })
  let running = await start()
  return {
    url,
    redis,
    provider,
    vars,
    /** The requests that reached the origin. */
    reached: origin.requests,
    /** Starts another gateway with the same Redis in place of this one. */
    async restart() {
      await running.stop()
      running = await start()
    },
    async close() {
      await Promise.all([running.stop(), origin.close(), provider.close()])
      await redis.close()
    },
  }
}

interface StartOptions {
  readonly definition: SignInDefinition
  readonly vars: Readonly<Record<string, string>>
  readonly port: number
}

export async function startOn(
  runtime: (typeof RUNTIMES)[number],
  { definition, vars, port }: StartOptions,
): Promise<{ stop(): Promise<void> }> {
  if (runtime === 'workerd') {
    const bindings = { ...vars, SIGN_IN: JSON.stringify(definition) }
    return startWorkerd({ entry: 'test/sign-in/worker.ts', vars: bindings, port })
  }
  const env = { ...vars, AUDIT_DATABASE: undefined }
  const server = await serve({ policy: policyFor(definition), env, port, graceMs: 1_000 })
  return { stop: () => server.close() }
}
