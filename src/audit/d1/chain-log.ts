/** Reads the chain of the audit trail in D1, page by page. */

import { PARTITION } from '../chain.ts'
import type { ChainLog, ChainPage } from '../log.ts'
import type { AuditDatabase, StatementResult } from './database.ts'
import { withinQuery } from './schema.ts'

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

/** Creates a {@link ChainLog}. A page is a consistent snapshot. Fails as {@link withinQuery} does. */
export function createChainLog(db: AuditDatabase): ChainLog {
  return {
    async read({ after, limit }) {
      const work = () =>
        db.batch([
          // One row more than the page shows whether a next page exists.
          db.prepare(ROWS).bind(PARTITION, after, limit + 1),
          db.prepare(CHECKPOINTS).bind(PARTITION, after, CHECKPOINTS_PER_ROW * (limit + 1)),
          db.prepare(HEAD).bind(PARTITION),
          ...(after === 0 ? [db.prepare(UNCHAINED).bind(PARTITION)] : []),
        ])
      return pageOf(await withinQuery(work, []), limit)
    },
  }
}

function pageOf(
  [found, checkpoints, heads, counts]: readonly StatementResult[],
  limit: number,
): ChainPage {
  const all = (found?.results ?? []) as Rows
  const rows = all.slice(0, limit)
  const next = all.length > limit ? Number(rows.at(-1)?.seq) : undefined
  const unchained = (counts?.results[0] as { readonly rows: number } | undefined)?.rows
  return {
    rows,
    checkpoints: ((checkpoints?.results ?? []) as Rows).filter(
      ({ seq }) => next === undefined || Number(seq) <= next,
    ),
    head: (heads?.results[0] as ChainPage['head'] | undefined) ?? null,
    ...(unchained !== undefined && { unchained }),
    ...(next !== undefined && { next }),
  }
}
