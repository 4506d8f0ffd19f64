/** The client for Upstash Redis: each call is one explicit pipeline in one HTTP request. */
import type { Fault } from '../problems/reasons.ts'
import { boundedCalls, type RedisCallOptions, type SendCall } from './bounded-calls.ts'
import type { RedisConnection } from './connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from './keys.ts'
import { errors, HttpClient } from './upstash-http.js'

export interface RedisRestOptions extends RedisCallOptions {
  readonly url: string
  readonly token: string
  /** The beginning of all names of keys. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string | undefined
}

/** One retry, only for a call without any response. */
const RETRY = { retries: 1, backoff: () => 10 }

/**
 * Creates the client. It uses the HTTP client of `@upstash/redis` without its conveniences: no type conversion, no
 * base64, no telemetry, and no class with 250 commands, because a call sends its commands as they are.
 */
export function createRedisRest({
  url,
  token,
  keyPrefix = DEFAULT_KEY_PREFIX,
  ...calls
}: RedisRestOptions): RedisConnection {
  const client = new HttpClient({
    baseUrl: url,
    headers: { authorization: `Bearer ${token}` },
    retry: RETRY,
    responseEncoding: false,
  })
  /** The same connection settings and sync token, without the retry. */
  const single: HttpClient = Object.create(client, {
    retry: { value: { attempts: 0 } },
    upstashSyncToken: {
      get: () => client.upstashSyncToken,
      set: (syncToken: string) => {
        client.upstashSyncToken = syncToken
      },
    },
  })
  const pipelined: SendCall = (commands, deadline, { once }) =>
    (once ? single : client).request({
      path: ['pipeline'],
      body: commands,
      signal: () => deadline.signal,
    })
  return { server: url, keys: createKeys(keyPrefix), send: boundedCalls(calls, pipelined, faultOf) }
}

function faultOf(cause: unknown): Fault {
  if (cause instanceof errors.UpstashJSONParseError) return 'malformed'
  if (cause instanceof errors.UpstashError) return 'refused'
  const name = cause instanceof Error ? cause.name : ''
  return name === 'TimeoutError' || name === 'AbortError' ? 'timeout' : 'unreachable'
}
