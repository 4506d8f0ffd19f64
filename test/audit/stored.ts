/** Reads what the chain has stored, in rows of before and in blocks. */
import type { StoredRow } from '../../cli/chain-hash.ts'
import type { ChainPage } from '../../cli/verify.ts'
import { erasuresIn, eventOfLine } from '../../src/audit/blocks/line.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { chainQuerySchema } from '../../src/audit/log.ts'
import { type AuditRow, eventOfRow } from '../../src/audit/sql/audit-row.ts'
import { createChainLog } from '../../src/audit/sql/chain-log.ts'
import type { TrailDatabase } from '../../src/audit/sql/database.ts'
import { rowOf } from './earlier-rows.ts'

/** Returns the rows of a part of the chain, and a row for each event of its blocks, in order. */
export function rowsIn({ rows, blocks = [] }: Pick<ChainPage, 'rows' | 'blocks'>): StoredRow[] {
  const ofBlocks = blocks.flatMap(({ first_seq, lines }) =>
    lines.map((line, index): StoredRow => {
      const [erasure = null] = erasuresIn(line)
      return { ...rowOf(eventOfLine(line)), seq: first_seq + index, erasure }
    }),
  )
  return [...rows, ...ofBlocks].sort((a, b) => Number(a.seq) - Number(b.seq))
}

/** Returns all events of the database in the order of the chain. */
export async function storedEvents(db: TrailDatabase): Promise<readonly AuditEvent[]> {
  const chain = createChainLog(db)
  const found: StoredRow[] = []
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: Awaited<ReturnType<typeof chain.read>> = await chain.read(
      chainQuerySchema.parse({ after: `${after}` }),
    )
    found.push(...rowsIn(page as ChainPage))
    after = page.next
  }
  return found.map((row) => eventOfRow(row as unknown as AuditRow))
}

export const storedIds = async (db: TrailDatabase): Promise<readonly string[]> =>
  (await storedEvents(db)).map(({ id }) => id)
