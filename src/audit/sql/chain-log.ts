/** Reads the chain of the audit trail in D1, page by page. */

import { type SearchColumns, searchDigest, type UsageCount } from '../blocks/search-columns.ts'
import { PARTITION } from '../chain.ts'
import type { ChainLog, ChainPage } from '../log.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import {
  type AuditDatabase,
  type AuditStatement,
  type Bytes,
  bytesOf,
  type StatementResult,
} from './database.ts'
import { isMissing, withinQuery } from './schema.ts'

type Rows = ChainPage['rows']

const ROWS = 'SELECT * FROM audit_events WHERE partition = ? AND seq > ? ORDER BY seq LIMIT ?'
const CHECKPOINTS =
  'SELECT * FROM audit_checkpoints WHERE partition = ? AND seq > ? ORDER BY seq, kind LIMIT ?'
const HEAD = 'SELECT seq, hash FROM audit_heads WHERE partition = ?'
/** Reads a whole index, so it runs only for the first page. */
const UNCHAINED =
  'SELECT count(*) AS rows FROM audit_events ' +
  'WHERE partition IS NULL OR partition <> ? OR seq IS NULL'
/** One sealed and one pruned checkpoint. */
const CHECKPOINTS_PER_ROW = 2

/** A page has whole blocks: those that begin within so many events, and at least one. */
const EVENTS_OF_BLOCKS = 2_000
const MAX_BLOCKS = 500
const NEAR =
  `first_seq > ?1 AND (first_seq <= ?1 + ${EVENTS_OF_BLOCKS} OR first_seq = (` +
  'SELECT first_seq FROM audit_blocks WHERE first_seq > ?1 ORDER BY first_seq LIMIT 1)) ' +
  `ORDER BY first_seq LIMIT ${MAX_BLOCKS}`
const blocksWith = (start: string) =>
  `SELECT ${BLOCK_COLUMNS}, min_ms, max_ms, ${start}, terms, ids FROM audit_blocks WHERE ${NEAR}`
const BLOCKS = blocksWith('start_ms')
/** For a database of before, which a consumer has not migrated yet. */
const BLOCKS_WITHOUT_START = blocksWith('NULL AS start_ms')
/** Shows whether a next page has blocks. */
const NEXT_BLOCKS =
  'SELECT first_seq FROM audit_blocks WHERE first_seq > ?1 AND first_seq > coalesce((' +
  `SELECT max(first_seq) FROM (SELECT first_seq FROM audit_blocks WHERE ${NEAR}) AS near), 0) ` +
  'ORDER BY first_seq LIMIT 1'
const USAGE =
  'SELECT * FROM audit_usage WHERE first_seq > ?1 AND first_seq <= coalesce((' +
  `SELECT max(last_seq) FROM (SELECT last_seq FROM audit_blocks WHERE ${NEAR}) AS near), 0)`
/** For one of a time before the blocks. */
const NO_BLOCKS = 'SELECT seq FROM audit_heads WHERE seq < 0'

/** Creates a {@link ChainLog}. A page is a consistent snapshot. Fails as {@link withinQuery} does. */
export function createChainLog(db: AuditDatabase): ChainLog {
  return {
    async read({ after, limit }) {
      const read = (blocks: readonly AuditStatement[]) =>
        db.batch([
          // One row more than the page shows whether a next page exists.
          db.prepare(ROWS).bind(PARTITION, after, limit + 1),
          db
            .prepare(CHECKPOINTS)
            .bind(PARTITION, after, CHECKPOINTS_PER_ROW * (limit + 1 + MAX_BLOCKS)),
          db.prepare(HEAD).bind(PARTITION),
          ...blocks,
          ...(after === 0 ? [db.prepare(UNCHAINED).bind(PARTITION)] : []),
        ])
      async function work() {
        for (const blocks of [BLOCKS, BLOCKS_WITHOUT_START])
          try {
            return await read(
              [blocks, NEXT_BLOCKS, USAGE].map((sql) => db.prepare(sql).bind(after)),
            )
          } catch (error) {
            if (!isMissing(error)) throw error
          }
        return read(Array(3).fill(db.prepare(NO_BLOCKS)))
      }
      return pageOf(db, await withinQuery(work, []), limit)
    },
  }
}

/** A row of a block with what searches read of it. */
type SearchedRow = BlockRow &
  Pick<SearchColumns, 'min_ms' | 'max_ms'> & {
    readonly start_ms: number | null
    readonly terms: Bytes
    readonly ids: Bytes
  }
type UsageRow = UsageCount & { readonly first_seq: number }

/** Returns a block with a digest of what searches read of it. */
async function withSearch(db: AuditDatabase, row: SearchedRow, usage: readonly UsageRow[]) {
  const { min_ms, max_ms, start_ms, terms, ids, ...block } = row
  const columns = { min_ms, max_ms, terms: bytesOf(terms), ids: bytesOf(ids), usage }
  const { lines, ...place } = await blockOf(db, block)
  return { ...place, lines: [...lines], start_ms, search: await searchDigest(columns) }
}

async function pageOf(
  db: AuditDatabase,
  [found, checkpoints, heads, blockRows, nextBlocks, usage, counts]: readonly StatementResult[],
  limit: number,
): Promise<ChainPage> {
  const all = (found?.results ?? []) as Rows
  const near = (blockRows?.results ?? []) as SearchedRow[]
  const following = nextBlocks?.results as readonly { readonly first_seq: number }[] | undefined
  // Rows and blocks after the first one that does not fit are on the next page.
  const [row, block] = [all[limit]?.seq, following?.[0]?.first_seq]
  const end = Math.min(Number(row ?? Infinity), block ?? Infinity)
  const rows = all.slice(0, limit).filter(({ seq }) => Number(seq) < end)
  const used = (usage?.results ?? []) as UsageRow[]
  let before = 0
  const blocks: Awaited<ReturnType<typeof withSearch>>[] = []
  for (const one of near.filter(({ first_seq }) => first_seq < end)) {
    const isOwn = ({ first_seq }: UsageRow) => first_seq > before && first_seq <= one.last_seq
    blocks.push(await withSearch(db, one, used.filter(isOwn)))
    before = one.last_seq
  }
  const next =
    end === Infinity
      ? undefined
      : Math.max(Number(rows.at(-1)?.seq ?? 0), blocks.at(-1)?.last_seq ?? 0)
  const unchained = (counts?.results[0] as { readonly rows: number } | undefined)?.rows
  return {
    rows,
    ...(blocks.length > 0 && { blocks }),
    checkpoints: ((checkpoints?.results ?? []) as Rows).filter(
      ({ seq }) => next === undefined || Number(seq) <= next,
    ),
    head: (heads?.results[0] as ChainPage['head'] | undefined) ?? null,
    ...(unchained !== undefined && { unchained }),
    ...(next !== undefined && { next }),
  }
}
