/**
 * The personal data in an audit row. The row's hash covers salted commitments to these columns, so
 * that an erasure can remove values and salt and the chain stays valid.
 */
import { base64url } from 'jose'
import { type Digest, sha256 } from '../crypto/sha256.ts'
import { type ChainRow, canonicalColumns } from './chain-row.ts'

export const ERASED_ADDRESS = 'erased'

/** Columns that are erased together. */
export interface PersonalGroup {
  /** This column is null after the erasure of the group. */
  readonly salt: string
  /** This column is null if all columns of the group are null. */
  readonly commitment: string
  /** The columns and their values after an erasure. */
  readonly erased: ChainRow
}

/** The caller, and the ids that link the row to other records. */
export const CALLER: PersonalGroup = {
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
    address: ERASED_ADDRESS,
  },
}

/** An operator's change, which may name a person. */
export const CHANGE: PersonalGroup = {
  salt: 'change_salt',
  commitment: 'change_commitment',
  erased: { change: null },
}

export const PERSONAL_GROUPS: readonly PersonalGroup[] = [CALLER, CHANGE]

/** 256 bits, so that an attacker cannot find the subject by trying all candidates. */
const SALT_BYTES = 32
/** Random bytes for many salts cost little more than those for one. */
const POOLED_SALTS = 64
let pool = new Uint8Array()

export function newSalt(): string {
  if (pool.length < SALT_BYTES)
    pool = crypto.getRandomValues(new Uint8Array(SALT_BYTES * POOLED_SALTS))
  const salt = base64url.encode(pool.subarray(0, SALT_BYTES))
  pool = pool.subarray(SALT_BYTES)
  return salt
}

/** The columns of each group in the order of canonical JSON. */
const SORTED: ReadonlyMap<PersonalGroup, readonly string[]> = new Map(
  PERSONAL_GROUPS.map((group) => [group, Object.keys(group.erased).sort()]),
)

/**
 * Adds a salt and a commitment for each group that has a value. The commitment is the SHA-256 of the
 * salt, a line feed, and the canonical JSON of the columns that are not null.
 */
export async function committed(row: ChainRow, digest: Digest = sha256): Promise<ChainRow> {
  const columns: Record<string, ChainRow[string]> = { ...row }
  for (const [group, names] of SORTED) {
    const isEmpty = names.every((name) => (row[name] ?? null) === null)
    const salt = isEmpty ? null : newSalt()
    columns[group.salt] = salt
    const given = salt && digest(`${salt}\n${canonicalColumns(row, names)}`)
    columns[group.commitment] = typeof given === 'object' ? await given : given
  }
  return columns
}

/** Returns the row without the values and the salt of a group, and with the id of the erasure. */
export const erased = (row: ChainRow, group: PersonalGroup, erasure: string): ChainRow => ({
  ...row,
  ...group.erased,
  [group.salt]: null,
  erasure,
})
