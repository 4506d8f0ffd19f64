/** Erasing somebody from the audit trail in D1, step by step: each can be repeated. */
import { PARTITION } from '../../audit/chain.ts'
import { erasureEvent, PERSONAL_ACTIONS, TUPLE_ACTIONS } from '../../audit/erasure.ts'
import { CALLER, CHANGE, type PersonalGroup } from '../../audit/personal.ts'
import { escapeId } from '../../relations/tuple.ts'
import { type AppendOptions, insertAuditEvents } from './audit-chain.ts'
import { within } from './deadline.ts'
import type { ErasureRow } from './erasure-orders.ts'

/** A statement may run 30 s, and others wait for it. */
const ROWS_PER_STATEMENT = 1_000
/** A run ends after so many; the next one goes on. */
const MAX_STATEMENTS = 10
/** Events come late from the spill (7 days) and from dead letters; later nobody needs to be known. */
const RECOGNISED_MS = 8 * 86_400_000

const NEXT = 'SELECT * FROM audit_erasures WHERE done_ms IS NULL ORDER BY ordered_ms LIMIT 1'
const BEGIN =
  'UPDATE audit_erasures SET first_seq = coalesce(first_seq, ' +
  '(SELECT min(seq) FROM audit_events WHERE partition = ?)) WHERE id = ? RETURNING first_seq'
/** In D1 now, and those that were in the export only. */
const COUNT =
  'SELECT (SELECT count(*) FROM audit_events WHERE partition = ?1 AND erasure = ?2) + rows AS rows ' +
  'FROM audit_erasures WHERE id = ?2'
const DONE =
  'UPDATE audit_erasures SET issuer = NULL, subject = NULL, rows = ?, done_ms = ? ' +
  'WHERE id = ? AND done_ms IS NULL'
const FORGET =
  'UPDATE audit_erasures SET salt = NULL, caller_digest = NULL, name_digest = NULL ' +
  'WHERE done_ms < ?'

const OF_CALLER = 'subject = ?2 AND issuer = ?3 AND time_ms <= ?4'
// What somebody has made of a column that should hold JSON must not stop an erasure.
const ofChange = (name: string) =>
  `CASE WHEN json_valid(change) THEN change ->> '${name}' ELSE '' END`
const TARGET = ofChange('target')
const IS_PERSONAL = PERSONAL_ACTIONS.map((action) => `${ofChange('action')} GLOB '${action}*'`)
/** Ids of tuples and their parts, between spaces. A relation keeps the `#` before it, a part no `|` in it. */
const idsOf = (text: string) =>
  [':', '|', '%7C', '"'].reduce(
    (sql, separator) => `replace(${sql}, '${separator}', ' ')`,
    `replace(${text} || ' ', '#', ' #')`,
  )
const OF_TARGET =
  `change IS NOT NULL AND time_ms <= ?4 AND (((${IS_PERSONAL.join(' OR ')}) AND ` +
  `(${TARGET} = ?2 OR substr(${TARGET}, -1 - length(?2)) = ':' || ?2)) OR ` +
  `(${ofChange('action')} GLOB '${TUPLE_ACTIONS}*' AND instr(${idsOf(TARGET)}, ?5) > 0))`
const DEAD_LETTERS =
  'DELETE FROM dead_letters WHERE instr(body, ?1) > 0 OR instr(body, ?2) > 0 ' +
  `OR instr(${idsOf('body')}, ?3) > 0`

/** The oldest erasure that is not done. */
export const nextErasure = (db: D1Database): Promise<ErasureRow | null> =>
  within(db.prepare(NEXT).first<ErasureRow>())

/**
 * Puts the beginning into the chain, which moves its head: a consumer that had not seen the order
 * fails, and reads it. Returns the erasure with the first row that there is.
 */
export async function beginErasure(
  db: D1Database,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<ErasureRow> {
  if (erasure.first_seq !== null) return erasure
  await insertAuditEvents(db, [erasureEvent(erasure, options.nowMs)], options)
  const begun = db.prepare(BEGIN).bind(PARTITION, erasure.id).first<Pick<ErasureRow, 'first_seq'>>()
  return { ...erasure, ...(await within(begun)) }
}

/** Erases rows and dead letters. False: there are more than a run takes. */
export async function eraseRows(db: D1Database, erasure: ErasureRow): Promise<boolean> {
  const quoted = JSON.stringify(erasure.subject)
  const inTuples = idIn(erasure.subject ?? '')
  const escaped = JSON.stringify(quoted).slice(1, -1)
  await within(db.prepare(DEAD_LETTERS).bind(quoted, escaped, inTuples).run())
  const values = [erasure.id, erasure.subject, erasure.issuer, erasure.ordered_ms]
  let left = MAX_STATEMENTS
  for (const [group, which] of [
    [CALLER, OF_CALLER],
    [CHANGE, OF_TARGET],
  ] as const) {
    const statement = db
      .prepare(statementOf(group, which))
      .bind(...values, ...(group === CHANGE ? [inTuples] : []))
    for (let changed = ROWS_PER_STATEMENT; changed > 0; left -= 1) {
      if (left === 0) return false
      changed = (await within(statement.run())).meta.changes
    }
  }
  return true
}

/** What stands in tuples for somebody, as {@link idsOf} leaves it; three spaces stand nowhere. */
const idIn = (subject: string): string =>
  ` ${(escapeId(subject) ?? ' ').replaceAll('|', ' ').replaceAll('"', ' ')} `

/** Puts the end into the chain, with how many of its rows were erased, and forgets the subject. */
export async function endErasure(
  db: D1Database,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<void> {
  const counted = db.prepare(COUNT).bind(PARTITION, erasure.id).first<{ rows: number }>()
  const rows = (await within(counted))?.rows ?? 0
  await insertAuditEvents(db, [erasureEvent(erasure, options.nowMs, rows)], options)
  await within(db.prepare(DONE).bind(rows, options.nowMs, erasure.id).run())
}

/** Forgets how to recognise whom nobody will hear of any more. */
export const forgetDigests = (db: D1Database, nowMs: number): Promise<unknown> =>
  within(
    db
      .prepare(FORGET)
      .bind(nowMs - RECOGNISED_MS)
      .run(),
  )

function statementOf({ salt, erased }: PersonalGroup, which: string): string {
  const columns = Object.entries(erased).map(([name, value]) =>
    value === null ? `${name} = NULL` : `${name} = '${value}'`,
  )
  return (
    `UPDATE audit_events SET ${columns.join(', ')}, ${salt} = NULL, erasure = ?1 WHERE rowid IN ` +
    `(SELECT rowid FROM audit_events WHERE ${which} LIMIT ${ROWS_PER_STATEMENT})`
  )
}
