/** Alterations of exported files that leave every hash, or every signature, as it is. */
import { createHash } from 'node:crypto'
import { canonical, type StoredRow } from '../../cli/chain-hash.ts'

const digest = (text: string) => createHash('sha256').update(text).digest('base64url')

interface Line {
  readonly event?: StoredRow
  readonly entry?: { readonly seq: number; readonly text: string }
  readonly [member: string]: unknown
}

const linesOf = (file: string) => file.split('\n').filter((line) => line !== '')
const fileOf = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('')
const parsed = (line: string) => JSON.parse(line) as Line

/** Replaces the text of the first event that `isMeant` accepts. Throws if there is none. */
function withText(
  file: string,
  isMeant: (fields: readonly string[]) => boolean,
  change: (fields: readonly string[]) => string,
): string {
  const lines = linesOf(file)
  for (const [at, line] of lines.entries()) {
    const { entry } = parsed(line)
    const fields = entry?.text.split('\t') ?? []
    if (entry === undefined || !isMeant(fields)) continue
    return fileOf(lines.with(at, JSON.stringify({ entry: { ...entry, text: change(fields) } })))
  }
  throw new Error('no such event')
}

const commitment = ([salt = '', values = '']: readonly string[]) => digest(`${salt}\n${values}`)

/** Presents an event with an operator's change as one without: the two commitments become one text. */
export const hideChange = (file: string): string =>
  withText(
    file,
    ({ length }) => length === 5,
    ([open, ...parts]) => {
      const both = `${commitment(parts.slice(0, 2))}\t${commitment(parts.slice(2))}`
      return [open, '', JSON.stringify({ commitment: both, erasure: 'an-erasure' })].join('\t')
    },
  )

/** Adds a number as the id of an erasure, which no hash covers. */
export const numberErasure = (file: string): string =>
  withText(
    file,
    ([, salt]) => salt === '',
    ([open = '', , values = '', ...others]) =>
      [open, '', values.replace(/"erasure":"[^"]+"/, '"erasure":7'), ...others].join('\t'),
  )

/** Writes another value before the real one of the same name. */
export const repeatMember = (file: string): string =>
  file.replace('"status":', '"status":599,"status":')

/** Adds a member to a checkpoint, which its signature does not cover. */
export const extendCheckpoint = (file: string): string =>
  file.replace('{"checkpoint":{', '{"checkpoint":{"note":1,')

/** Gives a checkpoint a kind that no version writes. */
export const renameKind = (file: string): string =>
  file.replace('"kind":"sealed"', '"kind":"other"')

/** Removes the last block, and what follows it. */
export const dropEnd = (file: string): string => {
  const lines = linesOf(file)
  return fileOf(
    lines.slice(
      0,
      lines.findLastIndex((line) => parsed(line).block !== undefined),
    ),
  )
}

/** Writes an integer as a number with a fraction. */
export const writeFraction = (file: string): string =>
  file.replace('"status":429', '"status":429.0')

/** The hash of a row of the first format omits these if they are null. */
const LATER_COLUMNS =
  /^(?:observed|rejected|host|origin|call|api_key|grants|fields|v|(?:change_)?(?:salt|commitment)|erasure)$/
const HASHES = ['hash', 'previous_hash']

/**
 * Replaces every row before an erased row of the first format, and gives the erased one the `previous_hash` that
 * follows. Returns the file and the number of the erased row.
 */
export function rewriteBegin(file: string): { readonly file: string; readonly seq: number } {
  const lines = linesOf(file)
  const end = lines.findLastIndex((line) => {
    const { event } = parsed(line)
    return typeof event?.erasure === 'string' && event.v === null
  })
  const seq = end + 1
  let previous = 'A'.repeat(43)
  const changed = lines.slice(0, seq).map((line, at) => {
    const { event } = parsed(line)
    if (event === undefined) throw new Error('a row is expected')
    const next: Record<string, string | number | null> = { ...event, previous_hash: previous }
    if (at !== end && event.erasure === null) {
      next.status = 599
      const isCovered = (name: string, value: unknown) =>
        !HASHES.includes(name) && !(LATER_COLUMNS.test(name) && value === null)
      next.hash = digest(`${previous}\n${canonical(next, isCovered)}`)
    }
    previous = String(next.hash)
    return JSON.stringify({ event: next })
  })
  return { file: fileOf([...changed, ...lines.slice(seq)]), seq }
}

/** Lets an erased row of the first format, of which nothing is proven, record its own erasure. */
export const recordInErased = (file: string): string => {
  const lines = linesOf(file)
  const isErased = ({ event }: Line) => typeof event?.erasure === 'string' && event.v === null
  const at = lines.findIndex((line) => isErased(parsed(line)))
  const { event } = parsed(lines[at] ?? '')
  const change = JSON.stringify({ action: 'audit.erasure-done', target: 'made-up' })
  const record = { ...event, erasure: 'made-up', change, reason: 'audit_erased:1' }
  return fileOf(lines.with(at, JSON.stringify({ event: record })))
}
