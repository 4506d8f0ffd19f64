/** A gateway process on Node, over a real Redis, and an origin that records its requests. */
import type { RequestListener } from 'node:http'
import { startGateway } from '../../harness/gateway.ts'
import { AUDIENCE } from '../../harness/issuer.ts'
import type { Running } from '../../harness/process.ts'

export interface NodeProcess {
  readonly url: string
  readonly running: Running
}

export type NodeGateway = Awaited<ReturnType<typeof startNodeGateway>>

/** `origin` answers what reaches the origin. Default: an empty list. Redis is reached `over` RESP. */
export async function startNodeGateway(
  variables: Readonly<Record<string, string>> = {},
  origin?: RequestListener,
  over: 'resp' | 'rest' = 'resp',
) {
  const gateway = await startGateway({
    runtime: 'process',
    entry: 'test/runtimes/node/process.ts',
    audience: [AUDIENCE],
    redis: over,
    variables,
    ...(origin && { origin }),
  })
  return {
    ...gateway,
    running: programOf(gateway),
    /** The requests that reached the origin. */
    reached: gateway.requests,
    /** Starts another process over the same Redis and origin. */
    async another(): Promise<NodeProcess> {
      const server = await gateway.another()
      return { url: server.url, running: programOf(server) }
    },
  }
}

function programOf({ running }: { readonly running?: Running | undefined }): Running {
  if (running === undefined) throw new Error('the gateway is no process')
  return running
}
