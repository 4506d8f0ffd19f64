/** The addresses that proxies write into a header, each that of its own client. */

/** The headers of which one is read. */
export type ProxyHeader = 'x-forwarded-for' | 'forwarded'

const TOKEN = /[!#$%&'*+.^_`|~\w-]+/.source
const VALUE = `${TOKEN}|"(?:[^"\\\\]|\\\\.)*"`
const PAIR = `[ \\t]*(${TOKEN})=(${VALUE})[ \\t]*`
/** What one proxy adds (RFC 7239 section 4). */
const ELEMENT = new RegExp(`^${PAIR}(?:;${PAIR})*$`)
const PAIRS = new RegExp(`;?${PAIR}`, 'gy')
const COMMA = 0x2c
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Yields the addresses of a header, from the right: the last proxy first. Text that is no address stays
 * as it is. Stop at the first address that no trusted proxy has: a client writes all that is left of it,
 * and nothing there can change, or make unreadable, what is on its right. Reads nothing that the caller
 * does not take, in time linear in the length of what it takes.
 */
export function* hopsIn(header: ProxyHeader, value: string): Generator<string, void, void> {
  const isForwarded = header === 'forwarded'
  for (let end = value.length; end >= 0; ) {
    const comma = isForwarded ? separatorBefore(value, end) : value.lastIndexOf(',', end - 1)
    // `lastIndexOf` reads a negative place as 0.
    const start = end === 0 ? -1 : comma
    const part = value.slice(start + 1, end).trim()
    // RFC 9110 section 5.6.1: empty elements of a list are ignored.
    if (part !== '') yield isForwarded ? nodeIn(part) : part
    end = start
  }
}

/**
 * Returns the place of the last comma before `end` that is not in quotation marks, or -1. The element on
 * its right is complete, so quotation marks further left do not matter.
 */
function separatorBefore(value: string, end: number): number {
  let isQuoted = false
  for (let at = end - 1; at >= 0; at -= 1) {
    const code = value.charCodeAt(at)
    if (code === QUOTE && !isEscaped(value, at)) isQuoted = !isQuoted
    else if (code === COMMA && !isQuoted) return at
  }
  return -1
}

/** Whether an odd number of backslashes precedes a character (RFC 9110 section 5.6.4). */
function isEscaped(value: string, at: number): boolean {
  let first = at
  while (value.charCodeAt(first - 1) === BACKSLASH) first -= 1
  return (at - first) % 2 === 1
}

/** Returns the address of an element. Empty if it has none or several. */
function nodeIn(element: string): string {
  const pairs = ELEMENT.test(element) ? [...element.matchAll(PAIRS)] : []
  const [first, ...more] = pairs.filter(([, name]) => name?.toLowerCase() === 'for')
  const value = more.length > 0 ? undefined : first?.[2]
  return value?.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1') ?? ''
}
