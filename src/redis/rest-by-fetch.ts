/** The protocol of Upstash's REST API by `fetch` alone, for guards: a guarded app bundles no client. */
import { IS_WORKERS } from '../isolate/platform.ts'
import type { Fault } from '../problems/reasons.ts'
import { boundedCalls, type SendCall } from './bounded-calls.ts'
import type { RedisConnection } from './connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from './keys.ts'
import type { RedisRestOptions } from './rest.ts'

/** Before the second attempt of a call that got no response, milliseconds. */
const BACKOFF_MS = 10

/** Replicas answer with writes up to this token, so a caller sees its own revocation. */
const SYNC_TOKEN = 'upstash-sync-token'

/**
 * Creates a connection as `createRedisRest` does, with the same deadline, circuit breaker, faults and
 * retry, see decision 0123. A redirect is refused, because the token is for one server only.
 */
export function createRedisByFetch({
  url,
  token,
  keyPrefix = DEFAULT_KEY_PREFIX,
  ...calls
}: RedisRestOptions): RedisConnection {
  const pipelineUrl = `${url.replace(/\/$/, '')}/pipeline`
  let syncToken = ''

  const pipelined: SendCall = async (commands, deadline, { once }) => {
    const { signal } = deadline
    const init: RequestInit = {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        [SYNC_TOKEN]: syncToken,
      },
      body: JSON.stringify(commands),
      redirect: 'manual',
      signal,
    }
    // Some frameworks keep answers of `fetch`. Workers do not, and older ones refuse the option.
    if (!IS_WORKERS) init.cache = 'no-store'
    const send = () => fetch(pipelineUrl, init)
    const response = await send().catch(async (error: unknown) => {
      if (once || signal.aborted) throw error
      await new Promise((resolve) => setTimeout(resolve, BACKOFF_MS))
      return send()
    })
    const text = await response.text()
    const replies: unknown = JSON.parse(text)
    if (!response.ok) throw new RefusedCall(`status ${response.status}`)
    syncToken = response.headers.get(SYNC_TOKEN) ?? ''
    return replies
  }

  return { server: url, keys: createKeys(keyPrefix), send: boundedCalls(calls, pipelined, faultOf) }
}

class RefusedCall extends Error {}

function faultOf(cause: unknown): Fault {
  if (cause instanceof SyntaxError) return 'malformed'
  if (cause instanceof RefusedCall) return 'refused'
  const name = cause instanceof Error ? cause.name : ''
  return name === 'TimeoutError' || name === 'AbortError' ? 'timeout' : 'unreachable'
}
