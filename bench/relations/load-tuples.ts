/** Writes the tuples of tenants with the store's own script. */
import { MAX_TUPLES_PER_WRITE, type RelationTuples } from '../../src/relations/store.ts'
import type { RelationTuple } from '../../src/relations/tuple.ts'

/** Number of concurrent writes. */
const CONCURRENT = 16

/** Writes all of `tuples` and returns their number. Throws if one of them existed before. */
export async function loadTuples(
  store: Pick<RelationTuples, 'write'>,
  tenant: string,
  tuples: Iterable<RelationTuple>,
): Promise<number> {
  const batches = batchesOf(tuples)
  let written = 0
  await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      // One shared iterator: each writer takes the next free batch.
      for (const writes of batches) {
        const done = await store.write(tenant, { writes, deletes: [] })
        if (done.written !== writes.length)
          throw new Error(`${writes.length} tuples, of which ${done.written} were written`)
        written += done.written
      }
    }),
  )
  return written
}

function* batchesOf(tuples: Iterable<RelationTuple>): Generator<readonly RelationTuple[]> {
  let batch: RelationTuple[] = []
  for (const tuple of tuples) {
    batch.push(tuple)
    if (batch.length === MAX_TUPLES_PER_WRITE) {
      yield batch
      batch = []
    }
  }
  if (batch.length > 0) yield batch
}
