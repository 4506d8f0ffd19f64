/** The cluster of a recorded run, in a process of its own: its gates must not wait for the load. */
import { join } from 'node:path'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { startChild } from '../processes/child.ts'
import type { ClusterFault } from './faults.ts'

/** Fewer than by default: each gateway reads the feed of each lane, on a machine that runs all of them. */
export const LANES = 16

export interface ClusterQuestion {
  readonly name: ClusterFault
  /** The processes that are cut off, for a fault of the network. */
  readonly cutOff: readonly number[]
}

export interface ClusterAnswer {
  readonly mayLoseUnits: boolean
}

export interface RecordedCluster {
  /** `REDIS_URL` of a gateway. */
  urlOf(process: number): string
  /** Performs one fault once. Returns whether units of windows may be lost: replication is asynchronous. */
  perform(question: ClusterQuestion): Promise<ClusterAnswer>
}

/** The name of a user of Redis for each process. The proxies read from it which process calls. */
export const userOf = (process: number): string => `gateway-${process}`

export async function startCluster(
  seed: number,
  shutdown: Pick<Shutdown, 'defer'>,
): Promise<RecordedCluster> {
  const child = await startChild<{ readonly url: string }>(
    join(import.meta.dirname, 'cluster-process.ts'),
    { SEED: String(seed) },
  )
  shutdown.defer(child.close)
  return {
    urlOf: (process) =>
      `${child.ready.url.replace('//', `//${userOf(process)}:any@`)}/?lanes=${LANES}`,
    perform: (question) => child.call(question),
  }
}
