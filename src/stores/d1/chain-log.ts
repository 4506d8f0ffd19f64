/** Pages of the audit trail's chain in D1, as they are stored. */
import { PARTITION } from '../../audit/chain.ts'
import type { ChainLog, ChainPage } from '../../audit/chain-log.ts'
import { Unavailable } from '../../errors.ts'
import { DeadlineExceeded, withDeadline } from '../../timers.ts'
import { QUERY_TIMEOUT_MS } from './audit-events.ts'
import { isMissing } from './schema.ts'

type Rows = ChainPage['rows']

const ROWS = 'SELECT * FROM audit_events WHERE partition = ? AND seq > ? ORDER BY seq LIMIT ?'
const CHECKPOINTS =
  'SELECT * FROM audit_checkpoints WHERE partition = ? AND seq > ? ORDER BY seq, kind LIMIT ?'
const HEAD = 'SELECT seq, hash FROM audit_heads WHERE partition = ?'
/** Reads the whole of an index, so it is asked once. */
const UNCHAINED =
  'SELECT count(*) AS rows FROM audit_events ' +
  'WHERE partition IS NULL OR partition <> ? OR seq IS NULL'
/** Sealed and pruned. */
const CHECKPOINTS_PER_ROW = 2

/**
 * A {@link ChainLog} over a D1 database; each page is of one moment. A database without a chain has
 * none. Throws `Unavailable` for every other failure, and after 5 s.
 */
export function createChainLog(db: D1Database): ChainLog {
  return {
    async read({ after, limit }) {
      try {
        const asked = db.batch([
          // One more than the page holds tells whether there is another.
          db.prepare(ROWS).bind(PARTITION, after, limit + 1),
          db.prepare(CHECKPOINTS).bind(PARTITION, after, CHECKPOINTS_PER_ROW * (limit + 1)),
          db.prepare(HEAD).bind(PARTITION),
          ...(after === 0 ? [db.prepare(UNCHAINED).bind(PARTITION)] : []),
        ])
        return pageOf(await withDeadline(asked, QUERY_TIMEOUT_MS), limit)
      } catch (cause) {
        if (isMissing(cause)) return { rows: [], checkpoints: [], head: null }
        const fault = cause instanceof DeadlineExceeded ? 'timeout' : 'refused'
        throw new Unavailable('audit_log', fault, { cause })
      }
    },
  }
}

function pageOf(
  [found, checkpoints, heads, counts]: readonly D1Result[],
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
