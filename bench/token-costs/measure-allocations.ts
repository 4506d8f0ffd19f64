/** What an operation allocates: bytes of the isolate's heap, most of them garbage at once. */
import { openHeap } from '../memory/heap.ts'
import { rounded } from '../statistics.ts'
import { startWorkerd, type WorkerdOptions } from '../workerd.ts'
import { type BatchAnswer, batchPath, NOTHING, OPERATIONS, type OperationId } from './operations.ts'

const SERVICE = 'operations'
/** Kilobytes each, so that V8 takes thousands of samples; RSA takes a second for so many. */
const BATCH = 300
/** Of those that allocate some hundred bytes, and take no time. */
const LARGE_BATCH = 15_000
const SMALL: ReadonlySet<string> = new Set<OperationId>(['uuid', 'recall-opaque', 'recall-jwt'])
/** Compiles what is asked, and fetches what is fetched once. */
const WARM_UP = 200

/** Bytes of one operation, by its id. */
export type Allocations = Readonly<Record<OperationId, number>>

/**
 * Measures all operations once, in a process of its own: an inspector costs time. V8 samples what is
 * allocated, at random about every 512 bytes, and counts what a collection frees meanwhile too; what as
 * many empty operations allocate is subtracted. Buffers off the heap, such as those of WebCrypto, do NOT
 * count.
 */
export async function measureAllocations(
  options: Omit<WorkerdOptions, 'names' | 'inspect'>,
): Promise<Allocations> {
  const workerd = await startWorkerd({ ...options, names: [SERVICE], inspect: true })
  try {
    const url = workerd.originOf(SERVICE)
    const run = (id: OperationId | typeof NOTHING, size: number) => runBatch(url, id, size)
    await run(NOTHING, 1)
    const heap = await openHeap(workerd.inspector ?? '', SERVICE)
    const bytesOf = (id: OperationId | typeof NOTHING, size: number) =>
      heap.allocatedBytes(() => run(id, size))
    const found: Partial<Record<OperationId, number>> = {}
    for (const { id } of OPERATIONS) {
      const size = SMALL.has(id) ? LARGE_BATCH : BATCH
      await run(id, Math.min(size, WARM_UP))
      found[id] = bytesEach(await bytesOf(id, size), await bytesOf(NOTHING, size), size)
    }
    heap.close()
    return found as Allocations
  } finally {
    await workerd.close()
  }
}

/** Of one operation of a batch; `empty` is what a batch of nothing allocates. */
export function bytesEach(batch: number, empty: number, size: number): number {
  return rounded(Math.max(0, batch - empty) / size, 0)
}

async function runBatch(url: string, id: OperationId | typeof NOTHING, size: number) {
  const response = await fetch(url + batchPath(id, size))
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${id}: answered with ${response.status}`)
  if ((JSON.parse(text) as BatchAnswer).count !== size)
    throw new Error(`${id}: did not do what was asked`)
}
