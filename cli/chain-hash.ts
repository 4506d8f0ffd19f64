/** Hashes of audit trail rows. The command line computes them independently of the gateway. */

import { createHash } from 'node:crypto'
import { objectIn } from './json.ts'

/** A row as stored in the database, by column name. */
export type StoredRow = Readonly<Record<string, string | number | null>>

/** Groups of columns that are erased together, and the values that they have after an erasure. */
const GROUPS: readonly {
  readonly salt: string
  readonly commitment: string
  readonly erased: StoredRow
}[] = [
  {
    salt: 'salt',
    commitment: 'commitment',
    erased: {
      issuer: null,
      subject: null,
      client: null,
      tenant: null,
      token_id_hash: null,
      api_key: null,
      grants: null,
      fields: null,
      request_id: '',
      trace_id: '',
      address: 'erased',
    },
  },
  { salt: 'change_salt', commitment: 'change_commitment', erased: { change: null } },
]

/**
 * Columns that later formats added. The hash of a row of the first format omits them if they are
 * null.
 */
const LATER = new Set([
  ...['observed', 'rejected', 'host', 'origin', 'call', 'api_key', 'grants', 'fields', 'v'],
  'erasure',
  ...GROUPS.flatMap(({ salt, commitment }) => [salt, commitment]),
])
/** There is one chain, and one format of rows with commitments. */
const PARTITION = '0'
const VERSION = 2
/** SHA-256 and salts in base64url. A text of another form could present two commitments as one. */
const FORM = /^[\w-]{43}$/
const hasForm = (value: unknown): boolean => typeof value === 'string' && FORM.test(value)
const HASHES = new Set(['hash', 'previous_hash'])
/** Columns that the hash of the second format covers by a commitment, or does not cover. */
const COMMITTED = new Set([
  ...[...HASHES, 'erasure'],
  ...GROUPS.flatMap(({ salt, erased }) => [salt, ...Object.keys(erased)]),
])

/**
 * Serializes the members that `isMeant` accepts as canonical JSON (RFC 8785). Default: all. They must
 * be strings, finite numbers or null.
 */
export function canonical(
  row: StoredRow,
  isMeant: (name: string, value: unknown) => boolean = () => true,
): string {
  // JSON.stringify() writes members in the order of the list.
  const names = Object.keys(row).filter((name) => isMeant(name, row[name]))
  return JSON.stringify(row, names.sort())
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64url')

/**
 * Returns the base64url SHA-256 of the previous hash, a line feed, and the columns that the format
 * covers.
 */
function hashOf(row: StoredRow): string {
  const covered = isOfFirstFormat(row)
    ? canonical(row, (name, value) => !HASHES.has(name) && !(LATER.has(name) && value === null))
    : canonical(row, (name, value) => value !== null && !COMMITTED.has(name))
  return digest(`${row.previous_hash}\n${covered}`)
}

/**
 * `whole`: the row is unchanged. `erased`: the row is unchanged except for erased columns.
 * `changed`: the row was modified. An erased row of the first format can be verified only by its
 * successor.
 */
export type RowState = 'whole' | 'erased' | 'changed'

/** Returns the state of a row. Does NOT check its links to other rows. */
export function stateOf(row: StoredRow): RowState {
  const isFirstFormat = isOfFirstFormat(row)
  const erasedGroups = GROUPS.filter((group) => isErased(row, group))
  const isMarked = typeof row.erasure === 'string'
  if (row.partition !== PARTITION || !(isFirstFormat || row.v === VERSION)) return 'changed'
  if (isFirstFormat && isMarked) {
    const isCommitted = GROUPS.some(({ commitment }) => (row[commitment] ?? null) !== null)
    return erasedGroups.length > 0 && !isCommitted ? 'erased' : 'changed'
  }
  if (hashOf(row) !== row.hash) return 'changed'
  if (isFirstFormat) return 'whole'
  const isGood = GROUPS.every((group) =>
    erasedGroups.includes(group)
      ? (row[group.commitment] ?? null) === null || hasForm(row[group.commitment])
      : isCommitted(row, group),
  )
  // A group without a commitment never had values, so nothing can have been erased from it.
  const isTaken = erasedGroups.some(({ commitment }) => row[commitment] !== null)
  if (!isGood || isTaken !== isMarked) return 'changed'
  return isTaken ? 'erased' : 'whole'
}

/**
 * Reports whether the row has the first format, which has no commitments. In a valid chain, no such
 * row follows a row with commitments.
 */
export const isOfFirstFormat = ({ v }: StoredRow): boolean => v === null || v === undefined

/** A row of an older export does not have the columns that were added later. */
const isErased = (row: StoredRow, { salt, erased }: (typeof GROUPS)[number]): boolean =>
  (row[salt] ?? null) === null &&
  Object.entries(erased).every(([name, value]) => (row[name] ?? null) === value)

function isCommitted(row: StoredRow, { salt, commitment, erased }: (typeof GROUPS)[number]) {
  const values = canonical(row, (name, value) => value !== null && Object.hasOwn(erased, name))
  return hasForm(row[salt]) && digest(`${row[salt]}\n${values}`) === row[commitment]
}

/** Reports whether the row's hash is correct for position `seq`. */
export const wasAt = (row: StoredRow, seq: number): boolean =>
  row.seq !== seq && hashOf({ ...row, seq }) === row.hash

/** A block of the chain: consecutive events with one hash. */
export interface StoredBlock {
  readonly first_seq: number
  readonly last_seq: number
  readonly previous_hash: string
  readonly hash: string
  /** Fields separated by tabs: the public part, then for each personal part its salt and its values. */
  readonly lines: readonly string[]
  /**
   * A query by request id does not find requests in the block that began before, in milliseconds since
   * the epoch. Absent or null: it finds all.
   */
  readonly start_ms?: number | null
  /** The digest of what other searches of the gateway read of the block. An exported block has none. */
  readonly search?: string
}

const FIELDS_OF_LINE = new Set([3, 5])

/** Returns what replaces the values of an erased part. Its salt is empty. */
function erasedValues(values: string) {
  const { commitment, erasure } = JSON.parse(values) as Record<string, unknown>
  const isValid = typeof commitment === 'string' && typeof erasure === 'string'
  if (!isValid || !hasForm(commitment)) throw new Error('no commitment')
  // The gateway writes it so, without another or a repeated member.
  if (JSON.stringify({ commitment, erasure }) !== values) throw new Error('other members')
  return { commitment, erasure }
}

function coveredBy(line: string): string {
  const fields = line.split('\t')
  if (!FIELDS_OF_LINE.has(fields.length)) throw new Error('a line has other fields')
  if (line.includes('\n')) throw new Error('a line has a line feed')
  const covered = [fields[0]]
  for (let at = 1; at < fields.length; at += 2) {
    const [salt = '', values = ''] = fields.slice(at, at + 2)
    if (salt !== '' && !hasForm(salt)) throw new Error('a line has another salt')
    covered.push(salt === '' ? erasedValues(values).commitment : digest(`${salt}\n${values}`))
  }
  return covered.join('\t')
}

/** Reports whether the events of a block have the right form, and its hash is that of its place and its events. */
export function isWholeBlock(block: StoredBlock): boolean {
  const { first_seq, last_seq, previous_hash, hash, lines } = block
  if (lines.length !== last_seq - first_seq + 1) return false
  try {
    return digest([previous_hash, first_seq, ...lines.map(coveredBy)].join('\n')) === hash
  } catch {
    return false
  }
}

/** Returns the events of a whole block as far as erasures are concerned: a row for each erasure. */
export function rowsOfBlock({
  first_seq,
  lines,
}: StoredBlock): readonly (readonly [StoredRow, RowState])[] {
  return lines.flatMap((line, index): (readonly [StoredRow, RowState])[] => {
    const [open = '', ...fields] = line.split('\t')
    const seq = first_seq + index
    const erasures = new Set(
      [0, 2].flatMap((at) =>
        fields[at] === '' ? [erasedValues(fields[at + 1] ?? '').erasure] : [],
      ),
    )
    if (erasures.size > 0) return [...erasures].map((erasure) => [{ seq, erasure }, 'erased'])
    return [[{ seq, reason: reasonIn(open), change: fields[3] ?? null }, 'whole']]
  })
}

/** Returns an empty text if the public part of an event has no reason, which the hash of its block does not exclude. */
function reasonIn(open: string): string {
  const { reason } = (objectIn(open) ?? {}) as Readonly<Record<string, unknown>>
  return typeof reason === 'string' ? reason : ''
}
