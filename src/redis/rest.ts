/** The client for Upstash Redis: each call is one pipeline in one HTTP request. */
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

/** A call without any response is repeated once, after this time. */
const RETRY_AFTER_MS = 10

/** A replica that gets this value back responds only after it has what the client has written. */
const SYNC_TOKEN = 'upstash-sync-token'

/**
 * Creates the client of an Upstash REST endpoint. Throws a `TypeError` if `url` is not an http or https
 * URL. It speaks to `/pipeline` only, and converts no types: see
 * docs/decisions/0011-runtime-libraries.md.
 */
export function createRedisRest({
  url,
  token,
  keyPrefix = DEFAULT_KEY_PREFIX,
  ...calls
}: RedisRestOptions): RedisConnection {
  if (!/^https?:\/\/./.test(url)) throw new TypeError('createRedisRest: url is not an http(s) URL')
  const endpoint = `${url.replace(/\/$/, '')}/pipeline`
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    [SYNC_TOKEN]: '',
  }

  const sendPipeline: SendCall = async (commands, deadline, once) => {
    const { signal } = deadline
    const post = () =>
      fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(commands), signal })
    let response: Response
    try {
      response = await post()
    } catch (cause) {
      if (once || deadline.isExpired) throw cause
      await new Promise((resolve) => setTimeout(resolve, RETRY_AFTER_MS))
      response = await post()
    }
    const replies = jsonOf(await response.text())
    if (!response.ok) throw new RestError('refused')
    headers[SYNC_TOKEN] = response.headers.get(SYNC_TOKEN) ?? ''
    return replies
  }

  return {
    server: url,
    keys: createKeys(keyPrefix),
    send: boundedCalls(calls, sendPipeline, faultOf),
  }
}

/** The endpoint has responded, without replies. It quotes nothing of the response. */
class RestError extends Error {
  readonly fault: Fault

  constructor(fault: Fault) {
    super(fault)
    this.fault = fault
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new RestError('malformed')
  }
}

function faultOf(cause: unknown): Fault {
  if (cause instanceof RestError) return cause.fault
  const name = cause instanceof Error ? cause.name : ''
  return name === 'TimeoutError' || name === 'AbortError' ? 'timeout' : 'unreachable'
}
