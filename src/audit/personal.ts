/**
 * The personal data in an audit row. The row's hash covers salted commitments to these columns, so
 * that an erasure can remove values and salt and the chain stays valid.
 */
import { base64url } from 'jose'
import { sha256 } from '../crypto/sha256.ts'
import { type ChainRow, canonicalJson, membersOf } from './chain-row.ts'

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

export const newSalt = (): string =>
  base64url.encode(crypto.getRandomValues(new Uint8Array(SALT_BYTES)))

/** Returns the SHA-256 of the salt, a line feed, and the canonical JSON of the non-null columns. */
const commitmentOf = (salt: string, { erased }: PersonalGroup, row: ChainRow): Promise<string> =>
  sha256(`${salt}\n${canonicalJson(membersOf(row, (name) => Object.hasOwn(erased, name)))}`)

/** Adds a salt and a commitment for each group that has a value. */
export async function committed(row: ChainRow): Promise<ChainRow> {
  const columns: Record<string, string | null> = {}
  for (const group of PERSONAL_GROUPS) {
    const isEmpty = Object.keys(group.erased).every((name) => (row[name] ?? null) === null)
    const salt = isEmpty ? null : newSalt()
    columns[group.salt] = salt
    columns[group.commitment] = salt === null ? null : await commitmentOf(salt, group, row)
  }
  return { ...row, ...columns }
}

/** Returns the row without the values and the salt of a group, and with the id of the erasure. */
export const erased = (row: ChainRow, group: PersonalGroup, erasure: string): ChainRow => ({
  ...row,
  ...group.erased,
  [group.salt]: null,
  erasure,
})
