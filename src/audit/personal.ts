/**
 * The personal data in an audit row. The row's hash covers salted commitments to these columns, so
 * that an erasure can remove values and salt and the chain stays valid.
 */
import { base64url } from 'jose'
import type { ChainRow } from './chain-row.ts'

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

/** 256 bits, so that an attacker cannot find the subject by trying all candidates. */
const SALT_BYTES = 32
/** A salt has 43 characters of base64url. One more byte, which is zero, gives it 44 in the text of many. */
const SPACED_BYTES = SALT_BYTES + 1
const SALT_CHARACTERS = 43
/** Random bytes and a text for many salts cost little more than those for one. */
const POOLED_SALTS = 64
let pool = ''
let used = 0

export function newSalt(): string {
  if (used === pool.length) {
    const bytes = crypto.getRandomValues(new Uint8Array(SPACED_BYTES * POOLED_SALTS))
    for (let at = SALT_BYTES; at < bytes.length; at += SPACED_BYTES) bytes[at] = 0
    pool = base64url.encode(bytes)
    used = 0
  }
  const salt = pool.slice(used, used + SALT_CHARACTERS)
  used += SALT_CHARACTERS + 1
  return salt
}

/** Returns the row without the values and the salt of a group, and with the id of the erasure. */
export const erased = (row: ChainRow, group: PersonalGroup, erasure: string): ChainRow => ({
  ...row,
  ...group.erased,
  [group.salt]: null,
  erasure,
})
