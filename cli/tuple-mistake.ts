/** Explains why a line of a file is not a valid relation tuple. */
import { objectIn } from './json.ts'

/** The character that a decoder inserts for bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd'
const MEMBERS = ['object', 'relation', 'subject', 'user']
/** Longer member names are truncated in the message. */
const MAX_NAME_CHARACTERS = 40

/**
 * Returns what is wrong with a line for which `tupleOfLine` returns undefined. The text continues a
 * sentence that begins with "it".
 */
export function mistakeOfLine(line: string): string {
  const text = line.trim()
  if (text.includes(REPLACEMENT)) return 'is not UTF-8'
  return text.startsWith('{') ? mistakeOfJson(text) : mistakeOfText(text)
}

function mistakeOfText(text: string): string {
  if (/\s/.test(text)) return 'contains white space, which must be %20 in ids'
  const hash = text.indexOf('#')
  if (hash === -1) return 'has no # after the object: object#relation@subject'
  const at = text.indexOf('@', hash)
  if (at === -1) return 'has no @ after the relation: object#relation@subject'
  const parts = [
    ['object', text.slice(0, hash)],
    ['relation', text.slice(hash + 1, at)],
    ['subject', text.slice(at + 1)],
  ]
  const [missing = 'tuple'] = parts.find(([, part]) => part === '') ?? []
  return `has no ${missing}: object#relation@subject`
}

function mistakeOfJson(text: string): string {
  const members = objectIn(text) as Record<string, unknown> | undefined
  if (members === undefined) return 'begins with { but is not JSON'
  const other = Object.keys(members).find((name) => !MEMBERS.includes(name))
  if (other !== undefined) {
    return `has a member ${JSON.stringify(other.slice(0, MAX_NAME_CHARACTERS))}, which is unknown`
  }
  const { object, relation, user, subject = user } = members
  if (user !== undefined && members.subject !== undefined) return 'has both subject and user'
  const parts = Object.entries({ object, relation, subject })
  const missing = parts.find(([, part]) => part === undefined)
  if (missing !== undefined) return `has no ${missing[0]}`
  const odd = parts.find(([, part]) => typeof part !== 'string')
  return odd === undefined ? 'has a duplicate member' : `has a ${odd[0]} that is not a string`
}
