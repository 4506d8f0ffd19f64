/** Writes the tuples of all sizes and the slow graphs to Redis. */
import { createRelationTuples } from '../../src/relations/redis/tuples.ts'
import { rounded } from '../statistics.ts'
import type { DirectRedis } from './direct-redis.ts'
import { organisationsIn, tenantOf, tuplesOf } from './graph.ts'
import { loadTuples } from './load-tuples.ts'
import type { SlowGraph } from './slow-graphs.ts'

/** A size with its tuples in Redis. */
export interface Filled {
  readonly size: number
  /** Memory of one tuple with its indexes, in bytes. */
  readonly bytes: number
  /** Tuples written per second. */
  readonly perSecond: number
}

/**
 * Writes the tuples with the store's own script. Throws an `Error` of one line if some of them
 * exist.
 */
export async function fillSizes(
  redis: DirectRedis,
  sizes: readonly number[],
  onProgress: (what: string) => void,
): Promise<readonly Filled[]> {
  // Types are needed only for lists.
  const store = createRelationTuples(redis, [])
  const filled: Filled[] = []
  for (const size of sizes) {
    onProgress(`writing ${size.toLocaleString('en')} tuples`)
    const usedBefore = await redis.usedBytes()
    const startedMs = performance.now()
    const written = await loadTuples(store, tenantOf(size), organisations(organisationsIn(size)))
    const seconds = (performance.now() - startedMs) / 1000
    if (written !== size) throw new Error(`${written} tuples were written, not ${size}`)
    filled.push({
      size,
      bytes: rounded(((await redis.usedBytes()) - usedBefore) / size, 0),
      perSecond: rounded(size / seconds, 0),
    })
  }
  return filled
}

function* organisations(count: number) {
  for (let number = 0; number < count; number++) yield* tuplesOf(number)
}

/** Writes each graph as its own tenant. */
export async function fillSlow(redis: DirectRedis, graphs: readonly SlowGraph[]): Promise<void> {
  const store = createRelationTuples(redis, [])
  for (const { id, tuples } of graphs) await loadTuples(store, id, tuples())
}
