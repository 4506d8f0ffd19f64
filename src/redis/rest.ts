/** The client for Upstash Redis: each call is one explicit pipeline in one HTTP request. */
import { errors, Redis } from '@upstash/redis/cloudflare'
import type { Fault } from '../problems/reasons.ts'
import { boundedCalls, type RedisCallOptions, type SendCall } from './bounded-calls.ts'
import type { RedisConnection } from './connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from './keys.ts'

export interface RedisRestOptions extends RedisCallOptions {
  readonly url: string
  readonly token: string
  /** The beginning of all names of keys. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string | undefined
}

/** One retry, only for a call without any response. */
const RETRY = { retries: 1, backoff: () => 10 }

/**
 * Creates the client. It uses `@upstash/redis` without its conveniences: no type conversion, no
 * base64, no telemetry. It does not use the `Pipeline` class of the library, because each instance
 * creates some 250 closures, once for every request.
 */
export function createRedisRest({
  url,
  token,
  keyPrefix = DEFAULT_KEY_PREFIX,
  ...calls
}: RedisRestOptions): RedisConnection {
  const client = new RestClient({
    url,
    token,
    retry: RETRY,
    responseEncoding: false,
    automaticDeserialization: false,
    enableTelemetry: false,
    enableAutoPipelining: false,
  })
  return {
    server: url,
    keys: createKeys(keyPrefix),
    send: boundedCalls(calls, client.pipelined, faultOf),
  }
}

class RestClient extends Redis {
  /** The same connection settings and sync token, without the retry. */
  private readonly single: typeof this.client = Object.create(this.client, {
    retry: { value: { attempts: 0 } },
    upstashSyncToken: {
      get: () => this.client.upstashSyncToken,
      set: (syncToken: string) => {
        this.client.upstashSyncToken = syncToken
      },
    },
  })

  readonly pipelined: SendCall = (commands, deadline, { once }) => {
    // The signal is passed as a function, which the client accepts although its type for one
    // request does not declare it. With a plain signal, an abort resolves to null, which reads as
    // "no value".
    const signalOf = (() => deadline.signal) as unknown as AbortSignal
    const client = once ? this.single : this.client
    return client.request({ path: ['pipeline'], body: commands, signal: signalOf })
  }
}

function faultOf(cause: unknown): Fault {
  if (cause instanceof errors.UpstashJSONParseError) return 'malformed'
  if (cause instanceof errors.UpstashError) return 'refused'
  const name = cause instanceof Error ? cause.name : ''
  return name === 'TimeoutError' || name === 'AbortError' ? 'timeout' : 'unreachable'
}
