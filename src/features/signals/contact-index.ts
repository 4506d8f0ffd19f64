/** Which signed-in users have an e-mail address or a phone number: for events that name one. */
import { sha256 } from '../../crypto/sha256.ts'
import type { Contact } from './subject.ts'

/** Port. Throws `Unavailable`. */
export interface ContactIndex {
  /** Adds a user for as long as what its login gives. */
  add(contacts: readonly Contact[], subject: string): Promise<void>
  /** Returns the users with one of these contacts. */
  find(contacts: readonly Contact[]): Promise<readonly FoundUser[]>
  /** Removes users from all of their contacts. */
  forget(users: readonly FoundUser[]): Promise<void>
}

export interface FoundUser {
  readonly issuer: string
  readonly subject: string
}

/** Returns what identifies a contact without naming it. Spellings of one address are equal. */
export const contactHash = ({ kind, issuer, value }: Contact): Promise<string> =>
  sha256(JSON.stringify([kind, issuer, NORMALIZED[kind](value)]))

const NORMALIZED: Readonly<Record<Contact['kind'], (text: string) => string>> = {
  // Mailboxes that differ in capitals alone belong to one person.
  email: (text) => text.trim().normalize('NFC').toLowerCase(),
  phone_number: (text) => text.replace(/[^\d+]/g, ''),
}
