/** The headers of a request as plain data. */
import type { ReceivedHeadersVariables } from './context.ts'

/** The slice of Hono's `Context` that is needed (`Context` itself is invariant). */
interface Carrier {
  readonly req: { readonly raw: Request }
  get(name: never): unknown
  set(name: never, value: never): void
}

type Received = ReceivedHeadersVariables['receivedHeaders']

/**
 * The headers that were received, by lower-case name; what came under one name several times is one
 * list (RFC 9110 section 5.2). They are read once for all stages: each look into the platform's
 * own `Headers` leaves JavaScript, and a request would do so some fifteen times. Where a middleware
 * has put another request in the place of the first (`c.req.raw`), the headers are that one's.
 */
export function receivedHeaders(c: Carrier): Received['fields'] {
  const variables = c as {
    get(name: 'receivedHeaders'): Received | undefined
    set(name: 'receivedHeaders', value: Received): void
  }
  const { raw } = c.req
  const known = variables.get('receivedHeaders')
  if (known?.of === raw) return known.fields
  const fields = new Map<string, string>()
  // Not a loop over them: each step of it would leave JavaScript twice.
  raw.headers.forEach((value, name) => {
    // The one name whose fields `Headers` do not join.
    const before = name === 'set-cookie' ? fields.get(name) : undefined
    fields.set(name, before === undefined ? value : `${before}, ${value}`)
  })
  variables.set('receivedHeaders', { of: raw, fields })
  return fields
}
