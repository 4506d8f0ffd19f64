/** What an operation allocates: bytes of the isolate's heap, most of them garbage at once. */
import { openHeap } from '../memory/heap.ts'
import { rounded } from '../statistics.ts'
import { startWorkerd, type WorkerdOptions } from '../workerd.ts'
import { type BatchAnswer, batchPath, NOTHING, OPERATIONS, type OperationId } from './operations.ts'

const SERVICE = 'operations'
/** Kilobytes each, so that V8 takes thousands of samples. */
const BATCH = 1_000
/** Of those that allocate some hundred bytes, and take no time; and of those that take some. */
const LARGE_BATCH = 15_000
const SMALL_BATCH = 300
const SIZES: { readonly [Id in OperationId]?: number } = {
  uuid: LARGE_BATCH,
  'recall-opaque': LARGE_BATCH,
  'recall-jwt': LARGE_BATCH,
  'issue-RS256': SMALL_BATCH,
  'issue-opaque-redis': SMALL_BATCH,
  'verify-opaque-redis': SMALL_BATCH,
}
/** Of what is measured, before it: what is compiled, and fetched once, is heap too. */
const WARM_UP_SHARE = 0.5

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
      const size = SIZES[id] ?? BATCH
      await run(id, Math.ceil(size * WARM_UP_SHARE))
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
