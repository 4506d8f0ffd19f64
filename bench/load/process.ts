/** One process of a load that several processes send. */
import { serveParent } from '../processes/child.ts'
import { type OpenLoad, offer } from './open.ts'
import type { OfferedByProcess } from './processes.ts'

serveParent({}, async (load: OpenLoad): Promise<OfferedByProcess> => {
  const { latencies, lateness, ...offered } = await offer(load)
  return { ...offered, latencies: latencies.values(), lateness: lateness.values() }
})
