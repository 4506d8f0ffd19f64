/** Dead letters about a subject of one tenant. Reads them as JSON, because free text names no tenant. */
import { type ConsumerDatabase, rowsOf } from './database.ts'
import { within } from './schema.ts'
import { contains, type Sql, sql, text } from './statement.ts'

const LETTERS_PER_PAGE = 200
/** In one run. */
const MAX_PAGES = 10

const BODY = text('body')

/** A letter without a backslash contains a value unchanged. With one, only the parser can decide. */
const candidates = (after: string, { tenant, subject, containsTuple }: TenantLetters): Sql =>
  sql`SELECT message_id, body FROM dead_letters WHERE message_id > ${after} AND
    ((${contains(BODY, tenant)} AND (${contains(BODY, subject)} OR ${containsTuple})) OR ${contains(BODY, '\\')})
    ORDER BY message_id LIMIT ${LETTERS_PER_PAGE}`

export interface TenantLetters {
  readonly tenant: string
  readonly subject: string
  /** SQL that reports whether `body` contains `inTuples`. */
  readonly containsTuple: Sql
  /** The subject as in a tuple whose ids are separated by spaces. */
  readonly inTuples: string
}

interface Candidate {
  readonly message_id: string
  readonly body: string
}

/**
 * Deletes the dead letters about a subject of one tenant. Returns false if letters remain to be read
 * in the next run. Keeps letters that are not JSON, and those that name another tenant as well.
 */
export async function eraseLettersOfTenant(
  db: ConsumerDatabase,
  letters: TenantLetters,
): Promise<boolean> {
  let after = ''
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const rows = await within(rowsOf<Candidate>(db, candidates(after, letters)))
    const found = rows.filter(({ body }) => isAbout(body, letters)).map(({ message_id: id }) => id)
    if (found.length > 0) {
      const theirs = db.dialect.isAmong('message_id', found)
      await within(db.run([sql`DELETE FROM dead_letters WHERE ${theirs}`]))
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < LETTERS_PER_PAGE) return true
    after = last.message_id
  }
  return false
}

/**
 * Reports whether a letter is about a subject of a tenant. All its `tenant` members have the value.
 * JSON text inside a string counts only if the document around it has no `tenant`: otherwise a caller
 * could choose a subject that contains the member of another tenant.
 */
function isAbout(letter: string, person: Omit<TenantLetters, 'containsTuple'>): boolean {
  let documents = documentIn(letter)
  let depth = 0
  while (documents.length > 0 && depth < MAX_NESTED) {
    const members = membersOf(documents)
    const tenants = members.filter(([name]) => name === 'tenant')
    if (tenants.length > 0)
      return (
        tenants.every(([, value]) => value === person.tenant) &&
        members.some((member) => names(member, person))
      )
    documents = members.flatMap(([, value]) => (typeof value === 'string' ? documentIn(value) : []))
    depth += 1
  }
  return false
}

/** Levels of JSON text inside of JSON text. */
const MAX_NESTED = 4

/** A target names the subject after a colon, as in `standard:alice`, or in a tuple. */
function names(
  [name, value]: Member,
  { subject, inTuples }: Pick<TenantLetters, 'subject' | 'inTuples'>,
): boolean {
  if (typeof value !== 'string') return false
  if (name === 'subject') return value === subject
  if (name !== 'target') return false
  return value === subject || value.endsWith(`:${subject}`) || idsIn(value).includes(inTuples)
}

/** Separates the ids in tuples with spaces, as the SQL for rows does. */
const idsIn = (target: string): string =>
  `${target} `.replaceAll('#', ' #').replaceAll(/[:|"]|%7C/g, ' ')

type Member = readonly [name: string, value: unknown]

/** Returns the members of all objects in the documents, without those in strings. */
function membersOf(documents: readonly unknown[]): Member[] {
  const members: Member[] = []
  const open: unknown[] = [...documents]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    for (const member of Object.entries(value)) {
      members.push(member)
      open.push(member[1])
    }
  }
  return members
}

/** Returns the object or array that a text contains as JSON, or nothing. */
function documentIn(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    // JSON text that was encoded twice.
    if (typeof value === 'string') return [[value]]
    return typeof value === 'object' && value !== null ? [value] : []
  } catch {
    return []
  }
}
