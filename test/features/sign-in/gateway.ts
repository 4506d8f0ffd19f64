/** A gateway with sign-in on each runtime, its provider, and an origin that records its requests. */

import type { SignInDefinition } from '../../../src/features/sign-in/definition.ts'
import {
  RUNTIMES,
  type Server,
  startServer,
  startGateway as startWith,
} from '../../harness/gateway.ts'
import { freePort } from '../../harness/process.ts'
import { policyFor } from './policy.ts'
import { type ProviderKind, startProvider, type TestProvider } from './provider.ts'

export { RUNTIMES }

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
  /** Further fields of the policy. */
  readonly policy?: Parameters<typeof policyFor>[1]
  /** Further variables. */
  readonly variables?: Readonly<Record<string, string>>
}

/** Starts Redis, an origin and a gateway whose users sign in at these providers. */
export async function startGatewayFor(
  all: readonly ListedProvider[],
  { runtime = 'Node', definition = {}, scope = 'openid profile', ...options }: ListedOptions = {},
) {
  const port = options.port ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const server = serverOf(runtime, definition, options.policy)
  const gateway = await startWith({
    ...server,
    port,
    publicUrl: 'own',
    origin(request, response) {
      if (request.url === '/events') {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': open\n\n')
        return
      }
      response.setHeader('Content-Type', 'text/html')
      response.setHeader('Set-Cookie', ['theme=dark', '__Host-portcullis-session=of-the-origin'])
      const { url: path, method, headers } = request
      const seen = { path, method, subject: headers['x-auth-subject'], cookie: headers.cookie }
      response.end(`<title>Orders</title><pre>${JSON.stringify(seen)}</pre>`)
    },
    issuers: () =>
      all.map(({ provider: { issuer }, entry }) => ({
        issuer,
        audience: url,
        algorithms: ['ES256'],
        ...entry,
      })),
    variables: {
      ...server.variables,
      ...options.variables,
      ISSUER_CLIENTS: JSON.stringify(
        all.map(({ provider: { issuer, client, credentials = client }, name, signIn }) => ({
          issuer,
          ...credentials,
          signIn: { name, scope, ...signIn },
        })),
      ),
    },
  })
  const { redis, environment, requests: reached, restart, close } = gateway
  return { url, redis, vars: environment, reached, restart, close }
}

/** The server of a runtime: with this definition, and further fields of the policy. */
function serverOf(
  runtime: (typeof RUNTIMES)[number],
  definition: SignInDefinition,
  policy: Parameters<typeof policyFor>[1] = {},
) {
  return {
    runtime,
    policy: policyFor(definition, policy),
    entry: 'test/features/sign-in/worker.ts',
    variables: { SIGN_IN: JSON.stringify(definition), POLICY: JSON.stringify(policy) },
  }
}

/** Starts another gateway with the variables of one, at another port. */
export function startOn(
  runtime: (typeof RUNTIMES)[number],
  vars: Readonly<Record<string, string | undefined>>,
  port: number,
): Promise<Server> {
  return startServer(serverOf(runtime, {}), vars, port)
}
