/** What proxies write into a header about their clients, one element for each proxy. */

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
 * Yields the elements of a header from right to left: the element of the last proxy first. The caller
 * must stop at the first address that is not of a trusted proxy, because a client can write everything
 * to the left of it. Text on the left cannot change the elements on its right, or make them
 * unreadable. Reads only the elements that the caller consumes, in time linear in their length.
 */
export function* elementsIn(header: ProxyHeader, value: string): Generator<string, void, void> {
  for (let end = value.length; end > 0; ) {
    const comma =
      header === 'forwarded' ? separatorBefore(value, end) : value.lastIndexOf(',', end - 1)
    const element = value.slice(comma + 1, end).trim()
    // RFC 9110 section 5.6.1: empty elements of a list are ignored.
    if (element !== '') yield element
    end = comma
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

/**
 * Returns the value of a parameter of an element of `Forwarded`. Undefined if the element has none or
 * several, or is unreadable.
 */
export function readParameter(element: string, parameter: string): string | undefined {
  const pairs = ELEMENT.test(element) ? [...element.matchAll(PAIRS)] : []
  const [first, ...more] = pairs.filter(([, name]) => name?.toLowerCase() === parameter)
  const value = more.length > 0 ? undefined : first?.[2]
  return value?.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1')
}
