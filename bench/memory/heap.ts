/** The heap of one isolate, asked for over the inspector; and the memory of its process. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type InspectorSession, openInspectorSession } from './inspector-session.ts'

/** What one collection of garbage finalizes, the next one frees. */
const COLLECTIONS = 2
const POKE_MS = 20
const BYTES_PER_KILOBYTE = 1_024
/** Small enough for thousands of samples of a batch; V8 takes them at random, this far apart. */
const SAMPLING_INTERVAL_BYTES = 512

/** Makes the isolate do anything: V8 collects when it is asked to and runs, and not before. */
export type Poke = () => Promise<unknown>

export interface Heap {
  /** Bytes that JavaScript holds once garbage is collected. Buffers off the heap do not count. */
  usedBytes(): Promise<number>
  /** About how many bytes `work` made the isolate allocate, what became garbage meanwhile too. */
  allocatedBytes(work: () => Promise<unknown>): Promise<number>
  close(): void
}

/** A node of V8's `SamplingHeapProfile`. */
interface SampledNode {
  readonly selfSize: number
  readonly children: readonly SampledNode[]
}

/**
 * Of the isolate of `service` under workerd; `authority` is that of the inspector. Without `poke` the
 * isolate must be busy by itself.
 */
export async function openHeap(authority: string, service: string, poke?: Poke): Promise<Heap> {
  const session = await openInspectorSession(authority, service)
  return {
    usedBytes: () => usedBytesOf(session, poke),
    allocatedBytes: (work) => allocatedBytesOf(session, work),
    close: session.close,
  }
}

/** Collects garbage, and says what is left. Asks for nothing else, so that it disturbs nothing else. */
async function usedBytesOf(session: InspectorSession, poke?: Poke): Promise<number> {
  for (let count = 0; count < COLLECTIONS; count++) {
    let isDone = false
    const collected = session.send('HeapProfiler.collectGarbage').finally(() => {
      isDone = true
    })
    // Where `poke` fails first, nobody waits for it any more.
    collected.catch(() => {})
    while (poke !== undefined && !isDone) await Promise.all([poke(), sleep(POKE_MS)])
    await collected
  }
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { readonly usedSize: number }
  return usedSize
}

async function allocatedBytesOf(
  session: InspectorSession,
  work: () => Promise<unknown>,
): Promise<number> {
  await session.send('HeapProfiler.startSampling', {
    samplingInterval: SAMPLING_INTERVAL_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  await work()
  const { profile } = (await session.send('HeapProfiler.stopSampling')) as {
    readonly profile: { readonly head: SampledNode }
  }
  return sizeOf(profile.head)
}

function sizeOf({ selfSize, children }: SampledNode): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize)
}

/** Resident memory of a process, bytes; undefined for one that has ended, or is ending. */
export function residentBytesOf(pid: number): number | undefined {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kilobytes === undefined ? undefined : Number(kilobytes) * BYTES_PER_KILOBYTE
  } catch {
    return undefined
  }
}
