/** Which requests to an origin may be sent twice. */
import type { OriginRequest } from './origin.ts'

/** RFC 9110 section 9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

/** Reports whether a request has an idempotent method and no body, and opens no WebSocket. */
export const isRepeatable = ({ incoming, body, headers }: OriginRequest): boolean =>
  IDEMPOTENT.has(incoming.method) && body === null && !headers.has('upgrade')
