/** The request for all layers of the pipeline, and its response. */
import { ORIGIN_BODY } from './backends.ts'
import type { Load } from './load.ts'
import type { RequestKind } from './options.ts'

/** The client address header that Cloudflare would set. */
const CLIENT_ADDRESS = '203.0.113.7'

const JSON_BODY = '{"item":"lamp","quantity":2,"position":[120.5,-40,3.25]}'

const TARGETS = {
  read: { method: 'GET', path: '/orders?limit=20', headers: {}, body: undefined },
  write: {
    method: 'POST',
    path: '/orders',
    headers: { 'content-type': 'application/json' },
    body: JSON_BODY,
  },
} as const satisfies Record<RequestKind, object>

/** Headers of every request. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  accept: 'application/json',
  'user-agent': 'portcullis-bench',
  'cf-connecting-ip': CLIENT_ADDRESS,
}

/** Returns the headers of a caller, as a browser or a client library sends them. */
export function headersOf(token: string, request: RequestKind): Record<string, string> {
  return { authorization: `Bearer ${token}`, ...COMMON_HEADERS, ...TARGETS[request].headers }
}

/**
 * Returns requests for orders below `url`, with each of `tokens` in turn. The origin must answer
 * them.
 */
export function orderLoad(
  url: string,
  request: RequestKind,
  tokens: readonly string[],
): Pick<Load, 'url' | 'method' | 'requests' | 'expectBody'> {
  const { method, path, body } = TARGETS[request]
  return {
    url: url + path,
    method,
    requests: tokens.map((token) => ({
      headers: headersOf(token, request),
      ...(body !== undefined && { body }),
    })),
    expectBody: ORIGIN_BODY,
  }
}
