/** The headers of a request as plain data. */
import type { Carrier, ReceivedHeadersVariables } from './context.ts'

type Received = ReceivedHeadersVariables['portcullis.receivedHeaders']

/**
 * Returns the received headers by lower-case name. Several fields of one name are joined to a list
 * (RFC 9110 section 5.2). Read once for all stages, because each access to the platform's `Headers`
 * leaves JavaScript, and again if a middleware has replaced the request.
 */
export function receivedHeaders(
  c: Carrier & { readonly req: { readonly raw: Request } },
): Received['fields'] {
  const { raw } = c.req
  const known = c.get('portcullis.receivedHeaders' as never) as Received | undefined
  if (known?.of === raw) return known.fields
  const { headers } = raw
  const fields = (headers as PlainHeaders).fields ?? fieldsOf(headers)
  c.set('portcullis.receivedHeaders' as never, { of: raw, fields } as never)
  return fields
}

/** Headers of a runtime that has them as plain data. */
interface PlainHeaders {
  readonly fields?: Received['fields']
}

function fieldsOf(headers: Headers): Received['fields'] {
  const fields = new Map<string, string>()
  // Not a `for` loop: each step would leave JavaScript twice.
  headers.forEach((value, name) => {
    // The only name for which `Headers` does not join the fields.
    const before = name === 'set-cookie' ? fields.get(name) : undefined
    fields.set(name, before === undefined ? value : `${before}, ${value}`)
  })
  return fields
}

/** Keeps the headers for a request that replaces `c.req.raw` and has the same headers. */
export function keepReceivedHeaders(
  c: Carrier & { readonly req: { readonly raw: Request } },
  replacement: Request,
): void {
  const fields = receivedHeaders(c)
  c.set('portcullis.receivedHeaders' as never, { of: replacement, fields } as never)
}
