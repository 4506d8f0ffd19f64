/** Erases a person from the blocks in the database, in steps that can be repeated. */
import type { Digest } from '../../crypto/sha256.ts'
import { eraseLines } from '../blocks/erasing.ts'
import { term } from '../blocks/terms.ts'
import { PERSONAL_ACTIONS, TUPLE_ACTIONS } from '../erasure.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf, replaceBlock } from './block-rows.ts'
import { type ConsumerDatabase, rowsOf } from './database.ts'
import type { ErasureRow } from './erasure-orders.ts'
import { mayContain } from './filter-condition.ts'
import { within } from './schema.ts'
import { joined, sql } from './statement.ts'

/** In one run. The next run continues. */
const MAX_BLOCKS = 200
const BLOCKS_PER_READ = 10

/** The terms of blocks with an operator's change that can name a person. */
const WITH_CHANGES = [...PERSONAL_ACTIONS, TUPLE_ACTIONS].map((action) =>
  term('change', action.slice(0, -1)),
)

/** Returns false if blocks remain for the next run. */
export async function eraseBlocks(
  db: ConsumerDatabase,
  erasure: ErasureRow,
  { digest }: { readonly digest?: Digest | undefined },
): Promise<boolean> {
  const { id, subject, ordered_ms } = erasure
  const candidates = joined(
    [term('subject', subject ?? ''), ...WITH_CHANGES].map(mayContain),
    ' OR ',
  )
  let after = erasure.block_seq ?? 0
  for (let read = 0; read < MAX_BLOCKS; read += BLOCKS_PER_READ) {
    const rows = await within(
      rowsOf<BlockRow>(
        db,
        sql`SELECT ${BLOCK_COLUMNS} FROM audit_blocks WHERE first_seq > ${after} AND min_ms <= ${ordered_ms}
          AND (${candidates}) ORDER BY first_seq LIMIT ${BLOCKS_PER_READ}`,
      ),
    )
    for (const row of rows) {
      const block = await blockOf(db, row)
      const { lines, erased, isChanged } = await eraseLines(block.lines, erasure, digest)
      const progress = sql`UPDATE audit_erasures SET block_seq = ${row.first_seq},
        block_rows = block_rows + ${erased} WHERE id = ${id} AND block_seq < ${row.first_seq}`
      const statements = isChanged ? await replaceBlock(db, row, lines) : []
      await within(db.run([...statements, progress]))
      after = row.first_seq
    }
    if (rows.length < BLOCKS_PER_READ) return true
  }
  return false
}
