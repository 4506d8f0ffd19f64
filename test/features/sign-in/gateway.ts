/** A gateway with sign-in on each runtime, its provider, and an origin that records its requests. */

import type { SignInDefinition } from '../../../src/features/sign-in/definition.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { policyFor } from './policy.ts'
import { type ProviderKind, startProvider, type TestProvider } from './provider.ts'

export const RUNTIMES = ['workerd', 'Node'] as const

export type SignInGateway = Awaited<ReturnType<typeof startGateway>>

export interface GatewayOptions {
  readonly runtime?: (typeof RUNTIMES)[number]
  readonly definition?: SignInDefinition
  readonly accessTokenSeconds?: number
  readonly kind?: ProviderKind
  readonly scope?: string
  /** Starts further providers. */
  readonly more?: (url: string) => Promise<{ provider: TestProvider; name: string }[]>
}

/** Starts everything. On Node, the gateway runs in this process. */
export async function startGateway({
  accessTokenSeconds,
  kind,
  more = async () => [],
  ...options
}: GatewayOptions = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const provider = await startProvider(url, accessTokenSeconds, kind)
  const all = [{ provider, name: 'Example' }, ...(await more(url))]
  const gateway = await startGatewayFor(all, { ...options, port })
  return {
    ...gateway,
    provider,
    async close() {
      await Promise.all([gateway.close(), provider.close()])
    },
  }
}

interface ListedProvider {
  readonly provider: Pick<TestProvider, 'issuer' | 'client'> & { readonly credentials?: object }
  readonly name: string
  /** Further fields of its entry in `ISSUERS`. */
  readonly entry?: Readonly<Record<string, unknown>>
  /** Further members of `signIn` in `ISSUER_CLIENTS`. */
  readonly signIn?: Readonly<Record<string, unknown>>
}

interface ListedOptions extends Pick<GatewayOptions, 'runtime' | 'definition' | 'scope'> {
  readonly port?: number
  readonly policy?: StartOptions['policy']
}

/** Starts Redis, an origin and a gateway whose users sign in at these providers. */
export async function startGatewayFor(
  all: readonly ListedProvider[],
  { runtime = 'Node', definition = {}, scope = 'openid profile', ...options }: ListedOptions = {},
) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const port = options.port ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const origin = await startHttpOrigin((request, response) => {
    if (request.url === '/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': open\n\n')
      return
    }
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
    ISSUERS: JSON.stringify(
      all.map(({ provider: { issuer }, entry }) => ({
        issuer,
        audience: url,
        algorithms: ['ES256'],
        ...entry,
      })),
    ),
    ISSUER_CLIENTS: JSON.stringify(
      all.map(({ provider: { issuer, client, credentials = client }, name, signIn }) => ({
        issuer,
        ...credentials,
        signIn: { name, scope, ...signIn },
      })),
    ),
  }
  const start = () => startOn(runtime, { definition, vars, port, policy: options.policy })
  let running = await start()
  return {
    url,
    redis,
    vars,
    /** The requests that reached the origin. */
    reached: origin.requests,
    /** Starts another gateway with the same Redis in place of this one. */
    async restart() {
      await running.stop()
      running = await start()
    },
    async close() {
      await Promise.all([running.stop(), origin.close()])
      await redis.close()
    },
  }
}

interface StartOptions {
  readonly definition: SignInDefinition
  /** Further fields of the policy. */
  readonly policy?: Parameters<typeof policyFor>[1] | undefined
  readonly vars: Readonly<Record<string, string>>
  readonly port: number
}

export async function startOn(
  runtime: (typeof RUNTIMES)[number],
  { definition, vars, port, policy = {} }: StartOptions,
): Promise<{ stop(): Promise<void> }> {
  if (runtime === 'workerd') {
    const bindings = {
      ...vars,
      SIGN_IN: JSON.stringify(definition),
      POLICY: JSON.stringify(policy),
    }
    return startWorkerd({ entry: 'test/features/sign-in/worker.ts', vars: bindings, port })
  }
  const env = { ...vars, AUDIT_DATABASE: undefined }
  const server = await serve({ policy: policyFor(definition, policy), env, port, graceMs: 1_000 })
  return { stop: () => server.close() }
}
