/** The headers in which trusted proxies report the country and the city of their client. */
import type { IncomingMessage } from 'node:http'
import type { Context } from 'hono'
import type { ReportedPlace } from '../../gateway/runtime.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import { unwrapped } from '../../validators/request-header.ts'
import type { Fields } from './fields.ts'
import type { NodeBindings } from './request-listener.ts'

/** Longer than the name of a city, in percent-encoded UTF-8. */
const MAX_VALUE_CHARACTERS = 500

export interface PlaceHeaderOptions {
  /** The name of the header with the country, in lower case. */
  readonly country?: string | undefined
  /** The name of the header with the city, in lower case. */
  readonly city?: string | undefined
  /** Reports whether a trusted proxy made the connection. */
  readonly isFromProxy: (incoming: IncomingMessage) => boolean
}

export interface PlaceHeaders {
  /**
   * Removes these headers from a request that no trusted proxy sent. Removes their names behind prefixes that servers
   * remove, such as `Grpc-Metadata-`, from every request: a proxy does not overwrite those.
   */
  withhold(headers: Fields, incoming: IncomingMessage): void
  /** Returns what a trusted proxy reported. Does NOT clean the texts. */
  placeOf(c: Context): ReportedPlace
}

/** Undefined if no header is named. */
export function placeHeaders({
  country,
  city,
  isFromProxy,
}: PlaceHeaderOptions): PlaceHeaders | undefined {
  const names = new Set([country, city].filter((name) => name !== undefined))
  if (names.size === 0) return undefined
  return {
    withhold(headers, incoming) {
      const isTrusted = isFromProxy(incoming)
      for (const name of [...headers.fields.keys()])
        if (names.has(unwrapped(name)) && !(isTrusted && names.has(name))) headers.delete(name)
    },
    placeOf(c) {
      if (!isFromProxy((c.env as NodeBindings).incoming)) return {}
      const received = receivedHeaders(c)
      const read = (name: string | undefined) =>
        name === undefined ? undefined : textIn(received.get(name))
      return { country: read(country), city: read(city) }
    },
  }
}

/**
 * Returns the text of a value: proxies write UTF-8, which Node reads as Latin-1, or encode it with percent signs. A list
 * is not read: what a client wrote may be in it. Undefined for values that are not readable.
 */
function textIn(value = ''): string | undefined {
  if (value.length > MAX_VALUE_CHARACTERS || value.includes(',')) return undefined
  try {
    const bytes = Buffer.from(value, 'latin1')
    return decodeURIComponent(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
    )
  } catch {
    return undefined
  }
}
