/** The addresses that proxies write into a header, each that of its own client. */

/** The headers of which one is read. */
export type ProxyHeader = 'x-forwarded-for' | 'forwarded'

/** More addresses than any chain of proxies has. */
const MAX_HOPS = 32

const TOKEN = /[!#$%&'*+.^_`|~\w-]+/.source
const VALUE = `${TOKEN}|"(?:[^"\\\\]|\\\\.)*"`
const PAIR = `[ \\t]*(${TOKEN})=(${VALUE})[ \\t]*`
/** What one proxy adds (RFC 7239 section 4). */
const ELEMENT = new RegExp(`^${PAIR}(?:;${PAIR})*$`)
const PAIRS = new RegExp(`;?${PAIR}`, 'gy')

/**
 * Returns the addresses of a header, from the right: the last proxy first. Text that is no address stays
 * as it is. Returns undefined if there are too many.
 */
export function hopsIn(header: ProxyHeader, value: string): readonly string[] | undefined {
  const parts = value.split(',', MAX_HOPS + 1)
  if (parts.length > MAX_HOPS) return undefined
  const hops = header === 'forwarded' ? elementsIn(parts).map(nodeIn) : parts.reverse()
  return hops.map((hop) => hop.trim())
}

/**
 * Joins the parts of elements with a comma in quotation marks, from the right. What a client wrote on the
 * left can therefore not change the elements of proxies. An unreadable rest is one element.
 */
function elementsIn(parts: readonly string[]): string[] {
  const elements: string[] = []
  let rest: string | undefined
  for (const part of parts.toReversed()) {
    rest = rest === undefined ? part : `${part},${rest}`
    if (!ELEMENT.test(rest)) continue
    elements.push(rest)
    rest = undefined
  }
  return rest === undefined ? elements : [...elements, rest]
}

/** Returns the address of an element. Empty if it has none or several. */
function nodeIn(element: string): string {
  const pairs = ELEMENT.test(element) ? [...element.matchAll(PAIRS)] : []
  const [first, ...more] = pairs.filter(([, name]) => name?.toLowerCase() === 'for')
  const value = more.length > 0 ? undefined : first?.[2]
  return value?.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1') ?? ''
}
