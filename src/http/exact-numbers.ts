/**
 * Numbers with more digits than a double has. A schema compares the rounded value, and the origin
 * receives the digits as they were sent, which it may read as another number. So a number that a schema
 * reads must be exact: the shortest text of its double has the same value.
 */

/** Takes the place of a number that is not exact, in a copy of its value. */
const INEXACT = Object.assign(() => undefined, {
  // No schema can convert it to a text or to another number.
  [Symbol.toPrimitive]() {
    throw new TypeError('inexact number')
  },
})

/** Fewer than 16 digits without an exponent are always exact. */
const SUSPECT = /[\d.]{16}|\d[eE]/
/** An escaped digit, point or exponent in a string of JSON. */
const ESCAPED = /\\u00(?:3\d|2[eE]|[46]5)/
const NUMBERS = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const NUMBER = /^[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"?/gs
/** A string, or a number outside of strings, of a text that is JSON. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d[\d.eE+-]*/gs

/** Reports whether a decimal number has the value of the shortest text of its double. */
export function isExact(text: string): boolean {
  if (!SUSPECT.test(text)) return true
  const value = Number(text)
  return Number.isFinite(value) && normalizeDecimal(text) === normalizeDecimal(String(value))
}

/** Returns the digits and the exponent of a decimal number, without zeros at either end. */
function normalizeDecimal(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  let begin = 0
  let end = digits.length
  while (digits[begin] === '0') begin += 1
  while (end > begin && digits[end - 1] === '0') end -= 1
  if (begin === end) return '0'
  const sign = text.startsWith('-') ? '-' : ''
  return `${sign}${digits.slice(begin, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

const twins = new WeakMap<object, object>()
const suspects = new WeakSet<object>()

/**
 * Finds the numbers of a JSON text that are not exact. `value` is the parsed text. Costs one pass over
 * a text that has neither 16 digits nor an exponent, and one more if all numbers in it are exact.
 */
export function findInexact(text: string, value: unknown): void {
  if (!SUSPECT.test(text) && !ESCAPED.test(text)) return
  const outside = text.replace(STRINGS, '')
  if (SUSPECT.test(outside) && !(outside.match(NUMBERS) ?? []).every(isExact))
    markInexact(text, value)
  // A schema may still convert a text to a number.
  else register(value, value)
}

function markInexact(text: string, value: unknown): void {
  const mark = crypto.randomUUID()
  const marked = text.replace(TOKENS, (token) =>
    token.startsWith('"') || isExact(token) ? token : `"${mark}"`,
  )
  const twin: unknown = JSON.parse(marked, (_, part: unknown) => (part === mark ? INEXACT : part))
  register(value, twin)
}

/** Recurses no deeper than the text was allowed to nest. */
function register(value: unknown, twin: unknown): boolean {
  if (twin === INEXACT) return true
  if (!isContainer(value) || !isContainer(twin)) return false
  suspects.add(value)
  let hasInexact = false
  for (const [name, part] of Object.entries(value))
    if (register(part, twin[name])) hasInexact = true
  if (hasInexact) twins.set(value, twin)
  return hasInexact
}

type Container = Readonly<Record<string, unknown>>
const isContainer = (value: unknown): value is Container =>
  typeof value === 'object' && value !== null

/** Returns the copy of an object or an array with {@link INEXACT}, if it has such a number. */
export const twinOf = (value: unknown): unknown =>
  isContainer(value) ? twins.get(value) : undefined

/** Reports whether a member of a parsed JSON object is the number that was sent. */
export function isExactMember(value: object, name: string): boolean {
  const twin = twins.get(value) as Container | undefined
  return twin?.[name] !== INEXACT
}

/**
 * Returns the paths of texts that a schema has read as numbers, and that an origin may read as others.
 * `output` is what the schema made of `input`. Of JSON, only values that {@link findInexact} has seen
 * are compared.
 */
export function textsReadAsOthers(
  input: unknown,
  output: unknown,
  isJson: boolean,
): (readonly string[])[] {
  const found: (readonly string[])[] = []
  addOthers(input, output, isJson, [], found)
  return found
}

function addOthers(
  input: unknown,
  output: unknown,
  isJson: boolean,
  path: readonly string[],
  found: (readonly string[])[],
): void {
  if (typeof input === 'string') {
    if (isReadAsOther(input, output)) found.push(path)
    return
  }
  if (!isContainer(input) || !isContainer(output) || (isJson && !suspects.has(input))) return
  for (const name of Object.keys(input)) {
    if (!Object.hasOwn(output, name)) continue
    // Nearly all values are texts that stay texts.
    if (input[name] !== output[name])
      addOthers(input[name], output[name], isJson, [...path, name], found)
  }
}

function isReadAsOther(text: string, output: unknown): boolean {
  if (typeof output === 'bigint') return !/^[+-]?\d+$/.test(text)
  if (!hasNumber(output)) return false
  // An empty text and `0x10` are numbers for JavaScript only.
  if (typeof output === 'number' && Number.isFinite(Number(text)) && !DECIMAL.test(text))
    return true
  return SUSPECT.test(text) && !(text.match(NUMBERS) ?? []).every(isExact)
}

/** A text in a query contains JSON at most. */
function hasNumber(output: unknown, depth = 0): boolean {
  if (typeof output === 'number') return true
  if (!isContainer(output) || output instanceof Date || depth > 32) return false
  return Object.values(output).some((part) => hasNumber(part, depth + 1))
}
