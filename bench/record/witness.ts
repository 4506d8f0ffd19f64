/** Detects whether the machine is overloaded, so that the gateways are not blamed for it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from './client.ts'
import { STARVED } from './faults-by-time.ts'
import type { System } from './system.ts'
import { PROCESSES } from './terms.ts'

/** Time between two checks. */
const PAUSE_MS = 200
/** On an idle machine an empty call takes a tenth of this. The gateways' timeout is 250 ms. */
const STARVED_MS = 75

/**
 * Calls each gateway's health endpoint, which has no dependencies, and sends Redis a `PING`, both
 * without the fault proxies. Records calls that take too long; a slow Redis counts for all
 * processes.
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
