/** One listening server of a gateway. What answers its requests, and its limits, can change. */
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { orderlyEnd } from './orderly-end.ts'
import type { Listeners } from './request-listener.ts'
import { refuseUnreadable } from './unreadable-requests.ts'
import { latestResponses, onHandedOver } from './upgrades.ts'

/** The limits of a server that a policy sets. */
export interface PolicyLimits {
  readonly maxHeaderSize: number
  readonly stallMs: number
}

export type Listening = Awaited<ReturnType<typeof listen>>

/** Resolves when the server listens. Throws the error of the system if it cannot. */
export async function listen(
  http: HttpServer,
  listeners: Listeners,
  limits: PolicyLimits,
  place: { readonly host: string; readonly port: number },
  scheme: 'http' | 'https' = 'http',
) {
  const latest = latestResponses(http)
  onHandedOver(http, latest, listeners)
  refuseUnreadable(http, latest)
  const stalls = listeners.watchStalls(http, limits.stallMs, latest)
  const end = orderlyEnd(http)
  // By default, Node silently drops headers above a number. Their size is limited.
  http.maxHeadersCount = 0
  http.listen(place.port, place.host)
  await once(http, 'listening')
  return {
    /** See `orderlyEnd`. */
    end,
    url: urlOf(http, scheme),
    /** Applies to new connections; the stall time also to open ones. */
    limit({ maxHeaderSize, stallMs }: PolicyLimits) {
      // Node reads the option for each connection. Its types omit it.
      Object.assign(http, { maxHeaderSize })
      stalls.limit(stallMs)
    },
  }
}

function urlOf(http: HttpServer, scheme: 'http' | 'https'): string {
  const { address, family, port } = http.address() as AddressInfo
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
