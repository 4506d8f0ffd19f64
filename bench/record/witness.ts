/** Looks whether the machine has time for the gateways, so that nobody is blamed where it has not. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from './client.ts'
import { STARVED } from './faults-by-time.ts'
import type { System } from './system.ts'
import { PROCESSES } from './terms.ts'

/** Between two looks. */
const PAUSE_MS = 200
/** A call that does nothing takes a tenth of it on an idle machine; the gateways' deadline is 250 ms. */
const STARVED_MS = 75

/**
 * Asks each gateway for its health, which touches nothing, and Redis for a `PING`, not by way of the
 * fault proxies. What takes too long is written down: of all where it was Redis.
 */
export async function witness(
  { gateways, surroundings, restToken, events, now }: System,
  signal: AbortSignal,
): Promise<void> {
  const client = createClient()
  const everybody = Array.from({ length: PROCESSES }, (_, index) => index)

  async function look(processes: readonly number[], ask: () => Promise<unknown>): Promise<void> {
    while (!signal.aborted) {
      const fromMs = now()
      await ask()
      const untilMs = now()
      if (untilMs - fromMs > STARVED_MS)
        events.push({ kind: 'fault', name: STARVED, processes, fromMs, untilMs })
      await sleep(PAUSE_MS)
    }
  }

  const headers = { authorization: `Bearer ${restToken}` }
  await Promise.all([
    look(everybody, () =>
      client.send({ method: 'GET', url: `${surroundings.ready.restUrl}/ping`, headers }),
    ),
    ...gateways.map((gateway, index) =>
      look([index], () =>
        client.send({ method: 'GET', url: `${gateway.url()}/-/healthz`, headers: {} }),
      ),
    ),
  ])
  client.close()
}
