/** The client's address, as the platform reports it. */
import type { Context } from 'hono'
import { IS_WORKERS } from '../isolate/platform.ts'
import { connectingAddress } from '../middleware/client-address.ts'

/** The environment of a request, as `@hono/node-server` passes it. */
interface NodeBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } }
}

/** Returns the address that no client can choose. Undefined if the platform reports none. */
export function platformAddress(c: Context): string | undefined {
  if (IS_WORKERS) return connectingAddress(c)
  return (c.env as NodeBindings | undefined)?.incoming?.socket?.remoteAddress
}
