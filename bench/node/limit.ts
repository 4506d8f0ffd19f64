/** Checks that a gateway counts before it is measured. */
import { bearing, ORDERS_PATH } from '../load/questions.ts'
import type { Peer, Running } from '../peers/peer.ts'

/** So low that the check reaches it. */
export const LOW_LIMIT = 3
const TOO_MANY = 429

/**
 * Sends requests with one token until the gateway refuses. Throws an `Error` of one line unless it
 * refuses with 429 after the limit, or after twice the limit if a new window has begun.
 */
export async function checkLimit(
  { title }: Pick<Peer, 'title'>,
  { url }: Pick<Running, 'url'>,
  token: string,
): Promise<void> {
  for (let sent = 0; sent <= 2 * LOW_LIMIT; sent++) {
    const response = await fetch(url + ORDERS_PATH, { headers: bearing(token) })
    await response.text()
    if (response.status === TOO_MANY && sent >= LOW_LIMIT) return
    if (response.status !== 200) throw new Error(`${title}: ${response.status} below the limit`)
  }
  throw new Error(`${title}: no refusal above the limit`)
}
