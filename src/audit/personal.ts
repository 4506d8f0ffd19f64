/**
 * What of a row is about somebody, and may have to be forgotten: the row's hash covers salted
 * commitments to it, so that values and salt can go and the chain stays whole. Pure but for salts.
 */
import { base64url } from 'jose'
import { sha256 } from '../tokens/sha256.ts'
import { type ChainRow, canonicalJson, told } from './chain-row.ts'

/** What stands in the place of an address that was erased. */
export const ERASED_ADDRESS = 'erased'

/** Columns that are forgotten together. */
export interface PersonalGroup {
  /** Column of the salt; null once the group was erased. */
  readonly salt: string
  /** Column of the commitment; null where there was nothing to commit to. */
  readonly commitment: string
  /** The columns, and what is in them once they were erased. */
  readonly erased: ChainRow
}

/** Who asked: with them what joins the row with the records of others. */
export const CALLER: PersonalGroup = {
  salt: 'salt',
  commitment: 'commitment',
  erased: {
    issuer: null,
    subject: null,
    client: null,
    tenant: null,
    token_id_hash: null,
    request_id: '',
    trace_id: '',
    address: ERASED_ADDRESS,
  },
}

/** What an operator changed, which may be somebody's. */
export const CHANGE: PersonalGroup = {
  salt: 'change_salt',
  commitment: 'change_commitment',
  erased: { change: null },
}

export const PERSONAL_GROUPS: readonly PersonalGroup[] = [CALLER, CHANGE]

/** 256 bits, so that nobody can try all subjects there are. */
const SALT_BYTES = 32

/** A new salt, base64url. */
export const newSalt = (): string =>
  base64url.encode(crypto.getRandomValues(new Uint8Array(SALT_BYTES)))

/** Base64url SHA-256 of the salt, a line feed, and canonical JSON of the columns that are not null. */
const commitmentOf = (salt: string, { erased }: PersonalGroup, row: ChainRow): Promise<string> =>
  sha256(`${salt}\n${canonicalJson(told(row, (name) => Object.hasOwn(erased, name)))}`)

/** The row with a salt and a commitment for each group that holds something. */
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

/** The row without the values and the salt of a group; it names the erasure that took them. */
export const erased = (row: ChainRow, group: PersonalGroup, erasure: string): ChainRow => ({
  ...row,
  ...group.erased,
  [group.salt]: null,
  erasure,
})
