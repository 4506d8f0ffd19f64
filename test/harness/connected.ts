/** Waits until a gateway has connected to its dependencies. */
import { setTimeout as sleep } from 'node:timers/promises'

const UNAVAILABLE = 503
const PATIENCE_MS = 60_000
const PAUSE_MS = 50

/**
 * Sends a request until its status is not that of an outage (default: 503), and returns that status; that of the
 * outage after `patienceMs` (default: a minute). With a short deadline, a stall of the machine is an outage. No other answer is repeated, so
 * that a wrong one fails the test.
 */
export async function connectedStatus(
  send: () => Promise<number>,
  { outage = UNAVAILABLE, patienceMs = PATIENCE_MS } = {},
): Promise<number> {
  const untilMs = Date.now() + patienceMs
  for (;;) {
    const status = await send()
    if (status !== outage || Date.now() >= untilMs) return status
    await sleep(PAUSE_MS)
  }
}
