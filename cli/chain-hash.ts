/** The hashes of a row of the audit trail, as the command line computes them for itself. */
import { createHash } from 'node:crypto'

/** Columns by name, as the database has them. */
export type StoredRow = Readonly<Record<string, string | number | null>>

/** Columns that are forgotten together, and what is in them then. */
const GROUPS: readonly {
  readonly salt: string
  readonly commitment: string
  readonly erased: StoredRow
}[] = [
  {
    salt: 'salt',
    commitment: 'commitment',
    erased: {
      ...{ issuer: null, subject: null, client: null, tenant: null, token_id_hash: null },
      ...{ request_id: '', trace_id: '', address: 'erased' },
    },
  },
  { salt: 'change_salt', commitment: 'change_commitment', erased: { change: null } },
]

/** Columns that a row of the first format has only in a database that was made for later ones. */
const LATER = new Set([
  ...['observed', 'v', 'erasure'],
  ...GROUPS.flatMap(({ salt, commitment }) => [salt, commitment]),
])
const HASHES = new Set(['hash', 'previous_hash'])
/** What the hash of the second format covers by commitments, or not at all. */
const COMMITTED = new Set([
  ...[...HASHES, 'erasure'],
  ...GROUPS.flatMap(({ salt, erased }) => [salt, ...Object.keys(erased)]),
])

/** RFC 8785 for flat objects of strings, finite numbers and null. */
export function canonical(row: StoredRow): string {
  const names = Object.keys(row).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`).join(',')}}`
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64url')

const only = (row: StoredRow, isMeant: (name: string, value: unknown) => boolean): StoredRow =>
  Object.fromEntries(Object.entries(row).filter(([name, value]) => isMeant(name, value)))

/** Base64url SHA-256 over the predecessor's hash, a line feed, and what the format covers. */
function hashOf(row: StoredRow): string {
  const covered = isOfFirstFormat(row)
    ? only(row, (name, value) => !HASHES.has(name) && !(LATER.has(name) && value === null))
    : only(row, (name, value) => value !== null && !COMMITTED.has(name))
  return digest(`${row.previous_hash}\n${canonical(covered)}`)
}

/**
 * `whole`: it is as it was written. `erased`: it is, but for what an erasure took. `changed`: it is
 * not. A row of the first format that was erased is only known by its successor.
 */
export type RowState = 'whole' | 'erased' | 'changed'

/** What a row is, judged by itself. */
export function stateOf(row: StoredRow): RowState {
  const isFirstFormat = isOfFirstFormat(row)
  const erasedGroups = GROUPS.filter((group) => isErased(row, group))
  const isMarked = typeof row.erasure === 'string'
  if (isFirstFormat && isMarked) {
    const isCommitted = GROUPS.some(({ commitment }) => (row[commitment] ?? null) !== null)
    return erasedGroups.length > 0 && !isCommitted ? 'erased' : 'changed'
  }
  if (hashOf(row) !== row.hash) return 'changed'
  if (isFirstFormat) return 'whole'
  const isGood = GROUPS.every((group) => erasedGroups.includes(group) || isCommitted(row, group))
  // A group without a commitment has nothing that could have been erased.
  const isTaken = erasedGroups.some(({ commitment }) => row[commitment] !== null)
  if (!isGood || isTaken !== isMarked) return 'changed'
  return isTaken ? 'erased' : 'whole'
}

/** Whether the row is of the format that has no commitments: none comes behind one that has. */
export const isOfFirstFormat = ({ v }: StoredRow): boolean => v === null || v === undefined

const isErased = (row: StoredRow, { salt, erased }: (typeof GROUPS)[number]): boolean =>
  (row[salt] ?? null) === null &&
  Object.entries(erased).every(([name, value]) => row[name] === value)

function isCommitted(row: StoredRow, { salt, commitment, erased }: (typeof GROUPS)[number]) {
  const values = only(row, (name, value) => value !== null && Object.hasOwn(erased, name))
  return row[salt] !== null && digest(`${row[salt]}\n${canonical(values)}`) === row[commitment]
}

/** Whether this would be the row's own hash if it stood at `seq`. */
export const wasAt = (row: StoredRow, seq: number): boolean =>
  row.seq !== seq && hashOf({ ...row, seq }) === row.hash
