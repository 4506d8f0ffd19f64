/** Free ports for the servers of the benchmarks. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { HOST } from '../dev/start/settings.ts'

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, HOST)
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
