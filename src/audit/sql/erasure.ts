/** Erases a person from the audit trail in the database, in steps that can be repeated. */

import { escapeId } from '../../access/relations/tuple.ts'
import { PARTITION } from '../chain.ts'
import { changeOf, erasureEvent, isAbout } from '../erasure.ts'
import { CALLER, CHANGE, type PersonalGroup } from '../personal.ts'
import { type AppendOptions, insertAuditEvents } from './audit-chain.ts'
import { eraseBlocks } from './block-erasure.ts'
import {
  type ConsumerDatabase,
  changesOf,
  firstOf,
  rowsOf,
  type TrailDatabase,
} from './database.ts'
import type { ErasureRow } from './erasure-orders.ts'
import { within } from './schema.ts'
import { contains, joined, type Sql, sql, text } from './statement.ts'
import { eraseLettersOfTenant } from './tenant-letters.ts'

/** A statement may run 30 s, and it blocks other statements. */
const ROWS_PER_STATEMENT = 1_000
/** In one run. The next run continues. */
const MAX_STATEMENTS = 10
/** Events arrive late from the overflow (up to 7 days) and from dead letters. */
const RECOGNIZED_MS = 8 * 86_400_000

const NEXT = sql`SELECT * FROM audit_erasures WHERE done_ms IS NULL ORDER BY ordered_ms LIMIT 1`

/**
 * Returns SQL that separates the ids in tuples, and their parts, with spaces. A relation keeps its
 * leading `#`; a part contains no `|`.
 */
const SEPARATED = [':', '|', '%7C', '"'].reduce(
  (body, separator) => sql`replace(${body}, ${separator}, ' ')`,
  sql`replace(body || ' ', '#', ' #')`,
)

/** Returns the oldest erasure that is not done. */
export const nextErasure = (db: TrailDatabase): Promise<ErasureRow | undefined> =>
  within(firstOf<ErasureRow>(db, NEXT))

/**
 * Appends the event of the start to the chain, which moves the head of the chain. A consumer that
 * has not read the order then fails and retries with the order. Returns the erasure with the first
 * row of the database.
 */
export async function beginErasure(
  db: ConsumerDatabase,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<ErasureRow> {
  if (erasure.first_seq !== null) return erasure
  await insertAuditEvents(db, [erasureEvent(erasure, options.nowMs)], options)
  const begin = sql`UPDATE audit_erasures SET first_seq = coalesce(first_seq, (SELECT min(seq) FROM (
      SELECT min(seq) AS seq FROM audit_events WHERE partition = ${PARTITION} UNION ALL
      SELECT min(first_seq) FROM audit_blocks) AS begins))
    WHERE id = ${erasure.id} RETURNING first_seq`
  const begun = await within(firstOf<Pick<ErasureRow, 'first_seq'>>(db, begin))
  return { ...erasure, ...begun }
}

/** Erases rows and dead letters. Returns false if rows remain for the next run. */
export async function eraseRows(
  db: ConsumerDatabase,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<boolean> {
  const areLettersErased = await eraseLetters(db, erasure)
  if (!(await eraseCaller(db, erasure))) return false
  if (!(await eraseChanges(db, erasure))) return false
  return (await eraseBlocks(db, erasure, options)) && areLettersErased
}

/** Erases the person as the caller of rows. Returns false if rows remain for the next run. */
async function eraseCaller(db: ConsumerDatabase, erasure: ErasureRow): Promise<boolean> {
  const { subject, issuer } = erasure
  const which = sql`subject = ${subject} AND issuer = ${issuer} AND ${isCovered(erasure)}`
  const { rowId } = db.dialect
  const rows = sql`${rowId} IN (SELECT ${rowId} FROM audit_events WHERE ${which} LIMIT ${ROWS_PER_STATEMENT})`
  const statement = withoutGroup(CALLER, erasure, rows)
  for (let left = MAX_STATEMENTS; left > 0; left -= 1)
    if ((await within(changesOf(db, statement))) === 0) return true
  return false
}

interface ChangeRow {
  readonly id: string
  readonly time_ms: number
  readonly change: string
}

/**
 * Erases the changes in rows that name the person. All that may name one are read. Returns false if rows remain for
 * the next run, which begins behind the last row of this one.
 */
async function eraseChanges(db: ConsumerDatabase, erasure: ErasureRow): Promise<boolean> {
  const subject = erasure.subject ?? ''
  const column = text('change')
  // A tuple contains the subject, or characters that are percent-encoded.
  const mayName = sql`(${contains(column, JSON.stringify(subject).slice(1, -1))} OR ${contains(column, '%')})`
  let [ms, id] = [erasure.change_ms ?? 0, erasure.change_id ?? '']
  for (let left = MAX_STATEMENTS; left > 0; left -= 1) {
    const page = await within(
      rowsOf<ChangeRow>(
        db,
        sql`SELECT id, time_ms, change FROM audit_events WHERE change IS NOT NULL AND ${isCovered(erasure)}
          AND (time_ms, id) > (${ms}, ${id}) AND ${mayName}
          ORDER BY time_ms, id LIMIT ${ROWS_PER_STATEMENT}`,
      ),
    )
    const named = page.filter(({ change }) => isAbout(changeOf(change), subject))
    if (named.length > 0) {
      const ids = named.map(({ id }) => id)
      await within(db.run([withoutGroup(CHANGE, erasure, db.dialect.isAmong('id', ids))]))
    }
    const end = page.at(-1)
    if (end === undefined || page.length < ROWS_PER_STATEMENT) return true
    ms = end.time_ms
    id = end.id
  }
  const place = sql`UPDATE audit_erasures SET change_ms = ${ms}, change_id = ${id} WHERE id = ${erasure.id}`
  await within(db.run([place]))
  return false
}

/** Returns a condition for the rows up to the order, of the tenant if it is within one. */
const isCovered = ({ ordered_ms, tenant }: ErasureRow): Sql =>
  tenant === null
    ? sql`time_ms <= ${ordered_ms}`
    : sql`time_ms <= ${ordered_ms} AND tenant = ${tenant}`

/** Erases dead letters. Returns false if letters remain for the next run. */
async function eraseLetters(
  db: ConsumerDatabase,
  { subject, tenant }: ErasureRow,
): Promise<boolean> {
  const inTuples = idIn(subject ?? '')
  const containsTuple = sql`${contains(SEPARATED, inTuples)}`
  if (tenant !== null && subject !== null) {
    return eraseLettersOfTenant(db, { tenant, subject, containsTuple, inTuples })
  }
  // Matches any text with the subject, so that none remains.
  const quoted = quotedForms(subject).map((form) => sql`${contains(text('body'), form)}`)
  const names = joined([...quoted, containsTuple], ' OR ')
  await within(db.run([sql`DELETE FROM dead_letters WHERE ${names}`]))
  return true
}

/** Returns how JSON contains a text, and how a JSON text contains this JSON. */
function quotedForms(text: string | null): string[] {
  const quoted = JSON.stringify(text)
  return [quoted, JSON.stringify(quoted).slice(1, -1)]
}

/**
 * Returns the form of a subject that {@link SEPARATED} leaves in a tuple, between spaces. Returns three
 * spaces, which never occur, for a subject that cannot be an id.
 */
const idIn = (subject: string): string =>
  ` ${(escapeId(subject) ?? ' ').replaceAll('|', ' ').replaceAll('"', ' ')} `

/** Appends the event of the end, with the number of erased rows. Then deletes the subject. */
export async function endErasure(
  db: ConsumerDatabase,
  erasure: ErasureRow,
  options: AppendOptions,
): Promise<void> {
  // Rows in the database now, plus rows that were erased only in the export.
  const count = sql`SELECT (SELECT count(*) FROM audit_events
      WHERE partition = ${PARTITION} AND erasure = ${erasure.id}) + rows + block_rows AS rows
    FROM audit_erasures WHERE id = ${erasure.id}`
  const rows = (await within(firstOf<{ rows: number }>(db, count)))?.rows ?? 0
  await insertAuditEvents(db, [erasureEvent(erasure, options.nowMs, rows)], options)
  const done = sql`UPDATE audit_erasures SET issuer = NULL, subject = NULL, rows = ${rows},
    done_ms = ${options.nowMs} WHERE id = ${erasure.id} AND done_ms IS NULL`
  await within(db.run([done]))
}

/** Deletes the digests of erasures that are old enough that no late event can arrive. */
export async function forgetDigests(db: ConsumerDatabase, nowMs: number): Promise<void> {
  const forget = sql`UPDATE audit_erasures SET salt = NULL, caller_digest = NULL, name_digest = NULL
    WHERE done_ms < ${nowMs - RECOGNIZED_MS}`
  await within(db.run([forget]))
}

function withoutGroup({ salt, erased }: PersonalGroup, { id }: ErasureRow, which: Sql): Sql {
  const columns = Object.entries({ ...erased, [salt]: null, erasure: id })
  const values = columns.map(([name, value = null]) => sql`${text(name)} = ${value}`)
  return sql`UPDATE audit_events SET ${joined(values, ', ')} WHERE ${which}`
}
