/** Decides which of a client's headers are forwarded to an origin. */

import { malformed } from '../errors.ts'
import { MOST_HEADER_BYTES } from '../validators/protection.ts'
import { createHeaderCheck, type HeaderRules } from '../validators/request-header.ts'
import type { ForwardHeadersVariables } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

/** Far above what any client sends. Each header uses resources of the origin. */
const MAX_HEADERS = 500
/** Colon, space, CR and LF of a header line. */
const LINE_OVERHEAD_BYTES = 4

export interface SanitizeHeadersOptions extends HeaderRules {
  /** Maximum size of all header fields, in bytes. Default 131,072. */
  readonly maxHeaderBytes?: number | undefined
}

/**
 * Sets `forwardHeaders`: a copy of the request's headers without
 * - the headers that the gateway writes (`X-Auth-*`, `X-Request-Id`, trace context)
 * - hop-by-hop headers, including those that `Connection` names: the stages behind do not see these
 * - `Cookie`, `Authorization` and `DPoP`
 * - headers in which common servers trust a proxy to report the caller, the address, the client
 *   certificate, or another method, path or host
 * - every name that is not plain letters, digits and hyphens
 *
 * `stripHeaders` adds names to this list, `keepHeaders` removes names from it. Throws `Denied`
 * (`malformed_request`) for more than 500 headers, or more than `maxHeaderBytes`. Does NOT check values.
 *
 * @example
 * ```ts
 * app.use(sanitizeHeaders({ stripHeaders: ['X-Tenant-*'], keepHeaders: ['X-User-Id'] }))
 * app.all('*', (c) => fetch(ORIGIN, { headers: Object.fromEntries(forwardHeadersOf(c)) }))
 * ```
 */
export const sanitizeHeaders = ({
  stripHeaders,
  keepHeaders,
  maxHeaderBytes = MOST_HEADER_BYTES,
}: SanitizeHeadersOptions = {}) => {
  const mayReachOrigin = createHeaderCheck({ stripHeaders, keepHeaders })
  return createMiddleware<{ Variables: ForwardHeadersVariables }>(
    function sanitizeHeaders(c, next) {
      const received = receivedHeaders(c)
      const forward = new Map<string, string>()
      let bytes = 0
      for (const [name, value] of received) {
        bytes += name.length + value.length + LINE_OVERHEAD_BYTES
        if (mayReachOrigin(name)) forward.set(name, value)
      }
      if (received.size > MAX_HEADERS) throw malformed('header_count')
      if (bytes > maxHeaderBytes) throw malformed('header_bytes')
      for (const name of namedIn(received.get('connection')))
        if (forward.delete(name)) received.delete(name)
      c.set('portcullis.forwardHeaders', forward)
      return next()
    },
  )
}

/**
 * Returns the lower-case names in `Connection`: these headers are of this hop (RFC 9110 section 7.6.1). Headers with
 * other characters in their names pass the gateway in neither direction.
 */
export const namedIn = (connection = ''): readonly string[] =>
  connection.toLowerCase().match(/[\w-]+/g) ?? []
