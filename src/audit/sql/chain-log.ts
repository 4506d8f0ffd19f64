/** Reads the chain of the audit trail, page by page. */

import type * as z from 'zod/mini'
import { type SearchColumns, searchDigest, type UsageCount } from '../blocks/search-columns.ts'
import { PARTITION } from '../chain.ts'
import type { ChainPage, chainQuerySchema } from '../log.ts'
import { BLOCK_COLUMNS, type BlockRow, blockOf } from './block-rows.ts'
import type { Result, TrailDatabase } from './database.ts'
import { isMissing, withinQuery } from './schema.ts'
import { type Sql, sql, text } from './statement.ts'

type Rows = ChainPage['rows']

const rowsAfter = (after: number, limit: number): Sql =>
  sql`SELECT * FROM audit_events WHERE partition = ${PARTITION} AND seq > ${after}
    ORDER BY seq LIMIT ${limit}`
const checkpointsAfter = (after: number, limit: number): Sql =>
  sql`SELECT * FROM audit_checkpoints WHERE partition = ${PARTITION} AND seq > ${after}
    ORDER BY seq, kind LIMIT ${limit}`
const HEAD = sql`SELECT seq, hash FROM audit_heads WHERE partition = ${PARTITION}`
/** Reads a whole index, so it runs only for the first page. */
const UNCHAINED = sql`SELECT count(*) AS rows FROM audit_events
  WHERE partition IS NULL OR partition <> ${PARTITION} OR seq IS NULL`
/** One sealed and one pruned checkpoint. */
const CHECKPOINTS_PER_ROW = 2

/** A page has whole blocks: those that begin within so many events, and at least one. */
const EVENTS_OF_BLOCKS = 2_000
const MAX_BLOCKS = 500
const near = (after: number): Sql =>
  sql`first_seq > ${after} AND (first_seq <= ${after + EVENTS_OF_BLOCKS} OR first_seq = (
    SELECT first_seq FROM audit_blocks WHERE first_seq > ${after} ORDER BY first_seq LIMIT 1))
    ORDER BY first_seq LIMIT ${MAX_BLOCKS}`
const blocksWith = (start: string, after: number): Sql =>
  sql`SELECT ${BLOCK_COLUMNS}, min_ms, max_ms, ${text(start)}, terms, ids
    FROM audit_blocks WHERE ${near(after)}`
/** In the database of an earlier version, which no consumer has migrated yet, blocks have no start. */
const STARTS = ['start_ms', 'NULL AS start_ms'] as const
/** Shows whether a next page has blocks. */
const nextBlocks = (after: number): Sql =>
  sql`SELECT first_seq FROM audit_blocks WHERE first_seq > ${after} AND first_seq > coalesce((
    SELECT max(first_seq) FROM (SELECT first_seq FROM audit_blocks WHERE ${near(after)}) AS near), 0)
    ORDER BY first_seq LIMIT 1`
const usageNear = (after: number): Sql =>
  sql`SELECT * FROM audit_usage WHERE first_seq > ${after} AND first_seq <= coalesce((
    SELECT max(last_seq) FROM (SELECT last_seq FROM audit_blocks WHERE ${near(after)}) AS near), 0)`
/** For one of a time before the blocks. */
const NO_BLOCKS = sql`SELECT seq FROM audit_heads WHERE seq < 0`

/** Creates the reader of the stored chain. Does NOT verify it. A page is a consistent snapshot. Fails as {@link withinQuery} does. */
export function createChainLog(db: TrailDatabase) {
  return {
    async read({ after, limit }: z.infer<typeof chainQuerySchema>): Promise<ChainPage> {
      const read = (blocks: readonly Sql[]) =>
        db.run([
          // One row more than the page shows whether a next page exists.
          rowsAfter(after, limit + 1),
          checkpointsAfter(after, CHECKPOINTS_PER_ROW * (limit + 1 + MAX_BLOCKS)),
          HEAD,
          ...blocks,
          ...(after === 0 ? [UNCHAINED] : []),
        ])
      async function work() {
        for (const start of STARTS)
          try {
            return await read([blocksWith(start, after), nextBlocks(after), usageNear(after)])
          } catch (error) {
            if (!isMissing(error)) throw error
          }
        return read(Array<Sql>(3).fill(NO_BLOCKS))
      }
      return pageOf(db, await withinQuery(work, []), limit)
    },
  }
}

/** A row of a block with what searches read of it. */
type SearchedRow = BlockRow &
  Pick<SearchColumns, 'min_ms' | 'max_ms'> & {
    readonly start_ms: number | null
    readonly terms: Uint8Array
    readonly ids: Uint8Array
  }
type UsageRow = UsageCount & { readonly first_seq: number }

/** Returns a block with a digest of what searches read of it. */
async function withSearch(db: TrailDatabase, row: SearchedRow, usage: readonly UsageRow[]) {
  const { min_ms, max_ms, start_ms, terms, ids, ...block } = row
  const columns = { min_ms, max_ms, terms, ids, usage }
  const { lines, ...place } = await blockOf(db, block)
  return { ...place, lines: [...lines], start_ms, search: await searchDigest(columns) }
}

async function pageOf(
  db: TrailDatabase,
  [found, checkpoints, heads, blockRows, following, usage, counts]: readonly Result[],
  limit: number,
): Promise<ChainPage> {
  const all = (found?.rows ?? []) as Rows
  const searched = (blockRows?.rows ?? []) as SearchedRow[]
  const nextFirst = following?.rows as readonly { readonly first_seq: number }[] | undefined
  // Rows and blocks after the first one that does not fit are on the next page.
  const [row, block] = [all[limit]?.seq, nextFirst?.[0]?.first_seq]
  const end = Math.min(Number(row ?? Infinity), block ?? Infinity)
  const rows = all.slice(0, limit).filter(({ seq }) => Number(seq) < end)
  const used = (usage?.rows ?? []) as UsageRow[]
  let before = 0
  const blocks: Awaited<ReturnType<typeof withSearch>>[] = []
  for (const one of searched.filter(({ first_seq }) => first_seq < end)) {
    const isOwn = ({ first_seq }: UsageRow) => first_seq > before && first_seq <= one.last_seq
    blocks.push(await withSearch(db, one, used.filter(isOwn)))
    before = one.last_seq
  }
  const next =
    end === Infinity
      ? undefined
      : Math.max(Number(rows.at(-1)?.seq ?? 0), blocks.at(-1)?.last_seq ?? 0)
  const unchained = (counts?.rows[0] as { readonly rows: number } | undefined)?.rows
  return {
    rows,
    ...(blocks.length > 0 && { blocks }),
    checkpoints: ((checkpoints?.rows ?? []) as Rows).filter(
      ({ seq }) => next === undefined || Number(seq) <= next,
    ),
    head: (heads?.rows[0] as ChainPage['head'] | undefined) ?? null,
    ...(unchained !== undefined && { unchained }),
    ...(next !== undefined && { next }),
  }
}
