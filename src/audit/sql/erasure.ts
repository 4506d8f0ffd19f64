/** Erases a person from the audit trail in D1, in steps that can be repeated. */

import { escapeId } from '../../access/relations/tuple.ts'
import { PARTITION } from '../chain.ts'
import { erasureEvent, PERSONAL_ACTIONS, TUPLE_ACTIONS } from '../erasure.ts'
import { CALLER, CHANGE, type PersonalGroup } from '../personal.ts'
import { type AppendOptions, insertAuditEvents } from './audit-chain.ts'
import { eraseBlocks } from './block-erasure.ts'
import type { AuditDatabase } from './database.ts'
import { type Dialect, SQLITE } from './dialect.ts'
import type { ErasureRow } from './erasure-orders.ts'
import { within } from './schema.ts'
import { eraseLettersOfTenant } from './tenant-letters.ts'

/** A statement may run 30 s, and it blocks other statements. */
const ROWS_PER_STATEMENT = 1_000
/** In one run. The next run continues. */
const MAX_STATEMENTS = 10
/** Events arrive late from the overflow (up to 7 days) and from dead letters. */
const RECOGNIZED_MS = 8 * 86_400_000

const NEXT = 'SELECT * FROM audit_erasures WHERE done_ms IS NULL ORDER BY ordered_ms LIMIT 1'
const BEGIN =
  'UPDATE audit_erasures SET first_seq = coalesce(first_seq, ' +
  '(SELECT min(seq) FROM (SELECT min(seq) AS seq FROM audit_events WHERE partition = ? UNION ALL ' +
  'SELECT min(first_seq) FROM audit_blocks) AS begins)) WHERE id = ? RETURNING first_seq'
/** Rows in D1 now, plus rows that were erased only in the export. */
const COUNT =
  'SELECT (SELECT count(*) FROM audit_events WHERE partition = ?1 AND erasure = ?2) + rows + block_rows AS rows ' +
  'FROM audit_erasures WHERE id = ?2'
const DONE =
  'UPDATE audit_erasures SET issuer = NULL, subject = NULL, rows = ?, done_ms = ? ' +
  'WHERE id = ? AND done_ms IS NULL'
const FORGET =
  'UPDATE audit_erasures SET salt = NULL, caller_digest = NULL, name_digest = NULL ' +
  'WHERE done_ms < ?'

const OF_CALLER = 'subject = ?2 AND issuer = ?3 AND time_ms <= ?4'
// A column without valid JSON must not stop an erasure.
const ofChange = (name: string) =>
  `CASE WHEN json_valid(change) THEN json_extract(change, '$.${name}') ELSE '' END`
const TARGET = ofChange('target')
const isAction = (prefix: string) =>
  `substr(${ofChange('action')}, 1, ${prefix.length}) = '${prefix}'`
/**
 * Returns SQL that separates the ids in tuples, and their parts, with spaces. A relation keeps its
 * leading `#`; a part contains no `|`.
 */
const idsOf = (text: string) =>
  [':', '|', '%7C', '"'].reduce(
    (sql, separator) => `replace(${sql}, '${separator}', ' ')`,
    `replace(${text} || ' ', '#', ' #')`,
  )
const OF_TARGET =
  `change IS NOT NULL AND time_ms <= ?4 AND (((${PERSONAL_ACTIONS.map(isAction).join(' OR ')}) AND ` +
  `(${TARGET} = ?2 OR (length(${TARGET}) > length(?2) AND ` +
  `substr(${TARGET}, length(${TARGET}) - length(?2)) = ':' || ?2))) OR ` +
  `(${isAction(TUPLE_ACTIONS)} AND instr(${idsOf(TARGET)}, ?5) > 0))`
/** For an erasure in every tenant. Matches any text with the subject, so that none remains. */
const DEAD_LETTERS =
  'DELETE FROM dead_letters WHERE (instr(body, ?1) > 0 OR instr(body, ?2) > 0 ' +
  `OR instr(${idsOf('body')}, ?3) > 0)`

/** Returns the oldest erasure that is not done. */
export const nextErasure = (db: AuditDatabase): Promise<ErasureRow | null> =>
  within(db.prepare(NEXT).first<ErasureRow>())

/**
 * Appends the event of the start to the chain, which moves the head of the chain. A consumer that
 * has not read the order then fails and retries with the order. Returns the erasure with the first
 * row of D1.
 */
export async function beginErasure(
  db: AuditDatabase,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<ErasureRow> {
  if (erasure.first_seq !== null) return erasure
  await insertAuditEvents(db, [erasureEvent(erasure, options.nowMs)], options)
  const begun = db.prepare(BEGIN).bind(PARTITION, erasure.id).first<Pick<ErasureRow, 'first_seq'>>()
  return { ...erasure, ...(await within(begun)) }
}

/** Erases rows and dead letters. Returns false if rows remain for the next run. */
export async function eraseRows(
  db: AuditDatabase,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<boolean> {
  const { tenant } = erasure
  const inTuples = idIn(erasure.subject ?? '')
  const areLettersErased = await eraseLetters(db, erasure, inTuples)
  const values = [erasure.id, erasure.subject, erasure.issuer, erasure.ordered_ms]
  let left = MAX_STATEMENTS
  for (const [group, which] of [
    [CALLER, OF_CALLER],
    [CHANGE, OF_TARGET],
  ] as const) {
    const bound = group === CHANGE ? [...values, inTuples] : values
    const inTenant = tenant === null ? '' : ` AND tenant = ?${bound.length + 1}`
    const statement = db
      .prepare(statementOf(db.dialect ?? SQLITE, group, which + inTenant))
      .bind(...bound, ...(tenant === null ? [] : [tenant]))
    for (let changed = ROWS_PER_STATEMENT; changed > 0; left -= 1) {
      if (left === 0) return false
      changed = (await within(statement.run())).meta.changes
    }
  }
  return (await eraseBlocks(db, erasure, options)) && areLettersErased
}

/** Erases dead letters. Returns false if letters remain for the next run. */
async function eraseLetters(
  db: AuditDatabase,
  { subject, tenant }: ErasureRow,
  inTuples: string,
): Promise<boolean> {
  if (tenant !== null && subject !== null) {
    const containsTuple = `instr(${idsOf('body')}, ?4) > 0`
    return eraseLettersOfTenant(db, { tenant, subject, containsTuple, inTuples })
  }
  const texts = [...quotedForms(subject), inTuples]
  const statement = db.prepare(DEAD_LETTERS).bind(...texts)
  await within(statement.run())
  return true
}

/** Returns how JSON contains a text, and how a JSON text contains this JSON. */
function quotedForms(text: string | null): string[] {
  const quoted = JSON.stringify(text)
  return [quoted, JSON.stringify(quoted).slice(1, -1)]
}

/**
 * Returns the form of a subject that {@link idsOf} leaves in a tuple, between spaces. Returns three
 * spaces, which never occur, for a subject that cannot be an id.
 */
const idIn = (subject: string): string =>
  ` ${(escapeId(subject) ?? ' ').replaceAll('|', ' ').replaceAll('"', ' ')} `

/** Appends the event of the end, with the number of erased rows. Then deletes the subject. */
export async function endErasure(
  db: AuditDatabase,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<void> {
  const counted = db.prepare(COUNT).bind(PARTITION, erasure.id).first<{ rows: number }>()
  const rows = (await within(counted))?.rows ?? 0
  await insertAuditEvents(db, [erasureEvent(erasure, options.nowMs, rows)], options)
  await within(db.prepare(DONE).bind(rows, options.nowMs, erasure.id).run())
}

/** Deletes the digests of erasures that are old enough that no late event can arrive. */
export async function forgetDigests(db: AuditDatabase, nowMs: number): Promise<void> {
  const statement = db.prepare(FORGET).bind(nowMs - RECOGNIZED_MS)
  await within(statement.run())
}

function statementOf({ rowId }: Dialect, { salt, erased }: PersonalGroup, which: string): string {
  const columns = Object.entries(erased).map(([name, value]) =>
    value === null ? `${name} = NULL` : `${name} = '${value}'`,
  )
  return (
    `UPDATE audit_events SET ${columns.join(', ')}, ${salt} = NULL, erasure = ?1 WHERE ${rowId} IN ` +
    `(SELECT ${rowId} FROM audit_events WHERE ${which} LIMIT ${ROWS_PER_STATEMENT})`
  )
}
