/** The runtime of a gateway on Node. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Runtime, WORKERS } from '../gateway/runtime.ts'
import { connectResp, type RespClient } from '../redis/resp.ts'
import { nodeEnvironment } from '../validators/node-environment.ts'
import { serverSettings } from '../validators/server-environment.ts'
import { forwardedAddress } from './client-address.ts'
import { createEventLog } from './event-log.ts'
import { createNodeOrigin, type NodeOrigin } from './origin.ts'

/** Environment variables. */
export type Variables = Readonly<Record<string, string | undefined>>

export interface NodeRuntime extends Runtime {
  /** Throws `Misconfigured` if the gateway cannot use its Redis; see `RespClient`. */
  check(): Promise<void>
  /** Ends all waits of work after responses, so that it is done now. */
  hurry(): void
  /** Closes all connections, after the calls of the origin in progress. */
  close(): Promise<void>
}

/** Creates the runtime. Does NOT check the variables: `composeServices` does, with `environment`. */
export function nodeRuntime(variables: Variables): NodeRuntime {
  const { REDIS_URL } = variables
  const { TRUSTED_PROXIES = [] } = serverSettings(variables)
  const hurry = new AbortController()
  let resp: RespClient | undefined
  let origin: NodeOrigin | undefined
  return {
    environment: nodeEnvironment,
    redis(config) {
      if (REDIS_URL === undefined) return WORKERS.redis(config)
      resp = connectResp(config)
      return resp.connect
    },
    origin({ url = '' }) {
      origin = createNodeOrigin({ url })
      return origin
    },
    writeEvent: createEventLog(process.stdout),
    webSockets: false,
    // Rejects at once when `hurry` aborts the wait.
    sleep: (ms) => wait(ms, undefined, { signal: hurry.signal }).catch(() => {}),
    addressOf: forwardedAddress(TRUSTED_PROXIES),
    check: async () => resp?.check(),
    hurry: () => hurry.abort(),
    async close() {
      resp?.close()
      await origin?.close()
    },
  }
}
