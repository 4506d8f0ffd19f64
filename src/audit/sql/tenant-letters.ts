/** Dead letters about a subject of one tenant. Reads them as JSON, because free text names no tenant. */
import type { AuditDatabase } from './database.ts'
import { within } from './schema.ts'

const LETTERS_PER_PAGE = 200
/** In one run. */
const MAX_PAGES = 10

/** A letter without a backslash contains a value unchanged. With one, only the parser can decide. */
const candidates = (containsTuple: string) =>
  'SELECT message_id, body FROM dead_letters WHERE message_id > ?1 AND ' +
  `((instr(body, ?2) > 0 AND (instr(body, ?3) > 0 OR ${containsTuple})) OR instr(body, '\\') > 0) ` +
  `ORDER BY message_id LIMIT ${LETTERS_PER_PAGE}`
const REMOVE = 'DELETE FROM dead_letters WHERE message_id IN (SELECT value ->> 0 FROM json_each(?))'

export interface TenantLetters {
  readonly tenant: string
  readonly subject: string
  /** SQL that reports whether `body` contains `?4`, which is `inTuples`. */
  readonly containsTuple: string
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
  db: AuditDatabase,
  { tenant, subject, containsTuple, inTuples }: TenantLetters,
): Promise<boolean> {
  const statement = db.prepare(candidates(containsTuple))
  let after = ''
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { results } = await within(
      statement.bind(after, tenant, subject, inTuples).all<Candidate>(),
    )
    const found = results.filter(({ body }) => isAbout(body, { tenant, subject, inTuples }))
    if (found.length > 0) {
      const ids = JSON.stringify(found.map(({ message_id: id }) => [id]))
      await within(db.prepare(REMOVE).bind(ids).run())
    }
    const last = results.at(-1)
    if (last === undefined || results.length < LETTERS_PER_PAGE) return true
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
