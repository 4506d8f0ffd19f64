/** Counts the events of the newest blocks of a period. */
import { eventOfLine } from '../blocks/line.ts'
import { type AuditSummary, createCounter, type Summary } from '../summary.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import { matcherOf, needlesOf, termsOf } from './block-search.ts'
import type { AuditDatabase } from './database.ts'
import { mayContain } from './filter-condition.ts'
import { withinQuery } from './schema.ts'

/** At most 25,000 events: some 100 ms of a processor. */
const MAX_BLOCKS = 100
/** Of about 50 KB each. */
const BLOCKS_PER_READ = 20

/**
 * Creates an {@link AuditSummary} over a D1 database. Events that earlier versions stored as rows are not counted. Fails
 * as {@link withinQuery} does.
 */
export function createAuditSummary(db: AuditDatabase): AuditSummary {
  return {
    summarize(query, period, within) {
      const { sinceMs, untilMs } = period
      const needles = needlesOf(query)
      const isWanted = matcherOf(query, within, period, undefined)
      const terms = termsOf(query, within).map((one) => ` AND ${mayContain(db, one)}`)
      const sql =
        `SELECT ${BLOCK_COLUMNS}, max_ms FROM audit_blocks WHERE max_ms >= ? AND min_ms < ?` +
        `${terms.join('')} ORDER BY max_ms DESC, first_seq DESC LIMIT ? OFFSET ?`

      async function count(): Promise<Summary> {
        const counter = createCounter(sinceMs, untilMs)
        for (let read = 0; ; read += BLOCKS_PER_READ) {
          const isLast = read >= MAX_BLOCKS
          const { results } = await db
            .prepare(sql)
            .bind(sinceMs, untilMs, isLast ? 1 : BLOCKS_PER_READ, read)
            .all<BlockRow & { readonly max_ms: number }>()
          if (isLast) return counter.result(Math.max(sinceMs, (results[0]?.max_ms ?? 0) + 1))
          for (const row of results)
            for (const line of (await blockOf(db, row)).lines) {
              if (!needles.every((needle) => line.includes(needle))) continue
              const event = eventOfLine(line)
              if (isWanted(event)) counter.add(event)
            }
          if (results.length < BLOCKS_PER_READ) return counter.result(sinceMs)
        }
      }
      return withinQuery(count, createCounter(sinceMs, untilMs).result(sinceMs))
    },
  }
}
