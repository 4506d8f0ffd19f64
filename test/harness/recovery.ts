/** Waits until an outage caused by a test has ended. */
import { expect } from 'vitest'
import { connectedStatus } from './connected.ts'
import { mint } from './issuer.ts'
import type { Stack } from './stack.ts'
import { subjectOfEachMaster } from './stack-redis.ts'

/** A circuit breaker probes again after 5 s at the latest, and the machine may be busy. */
const RECOVERY = { patienceMs: 20_000 }

/**
 * Resolves when each gateway serves again, with each master. Call it only after a dependency was down: until the next
 * probe of a circuit breaker a 503 is correct. Everywhere else a 503 is a failure.
 */
export async function recovered(
  stack: Pick<Stack, 'inlineKey' | 'redisUrls'>,
  gateways: readonly string[],
): Promise<void> {
  for (const gateway of gateways)
    for (const sub of subjectOfEachMaster(stack)) {
      const authorization = `Bearer ${await mint(stack.inlineKey, { claims: { sub } })}`
      const status = async () => {
        const response = await fetch(`${gateway}/orders`, { headers: { authorization } })
        await response.arrayBuffer()
        return response.status
      }
      expect(await connectedStatus(status, RECOVERY)).toBe(200)
    }
}

/**
 * Resolves when each gateway is ready. Call it where an earlier file may have ended an outage a moment ago:
 * on Node the queue is in Redis too, and counts as unavailable for some seconds after an outage.
 */
export async function becomesReady(gateways: readonly string[]): Promise<void> {
  for (const gateway of gateways) {
    const status = async () => (await fetch(`${gateway}/-/readyz`)).status
    expect(await connectedStatus(status, RECOVERY)).toBe(200)
  }
}
