import type { Verdict } from '../../inspection/judge.ts'
import type { SignatureId } from '../../problems/reasons.ts'
import { commandInjection } from './command-injection.ts'
import { crossSiteScripting } from './cross-site-scripting.ts'
import type { SignaturesDefinition } from './definition.ts'
import { ldapInjection } from './ldap-injection.ts'
import { nosqlInjection } from './nosql-injection.ts'
import { pathTraversal } from './path-traversal.ts'
import { anyOf, oneOf, type SignatureSet } from './signature-set.ts'
import { sqlInjection } from './sql-injection.ts'
import { ssrfTarget } from './ssrf-target.ts'
import { templateInjection } from './template-injection.ts'
import type { VerdictCache } from './verdict-cache.ts'

const SETS: readonly SignatureSet[] = [
  sqlInjection,
  pathTraversal,
  commandInjection,
  ssrfTarget,
  crossSiteScripting,
  nosqlInjection,
  ldapInjection,
  templateInjection,
]

/** Text that is suspicious in any context, including prose. */
const SUSPICIOUS_IN_PROSE = oneOf(
  String.raw`\.\. -- @@ xp_ oast burpcollaborator interact\.sh 169\.254 metadata\.google`,
  String.raw`\b${oneOf('union select order having procedure exec execute waitfor')}\b`,
)
/** One word: most names, and many values. No rule matches one. */
const ONE_WORD = /^[a-z\d]*$/i
/** Texts that need no scan: none of these characters can start an attack. */
const PLAIN = anyOf(
  'i',
  String.raw`^(?![^]{0,200}${SUSPICIOUS_IN_PROSE})[\w .,!?+@\u00a1-\uffff-]{0,200}$`,
)

/** Each rule has one bit of a verdict: 32 at most. V8 allocates a number only for the last two. */
export const SIGNATURES = SETS.flatMap(({ category, scores }) =>
  Object.entries(scores).map(([rule, score]) => {
    return { id: `${category}.${rule}` as const, category, score }
  }),
).map((signature, index) => ({ ...signature, bit: 1 << index }))

/** The shift of each set's bits in a verdict. */
const SHIFTS = SETS.map((set) => SIGNATURES.findIndex(({ category }) => category === set.category))

/**
 * Returns the rules that a text matches, as it is, decoded once more, from Base64, or without
 * padding. Takes time linear in the length of the text. Does NOT decide: see {@link createVerdictReader}.
 */
export function scan(text: string, cache: VerdictCache): Verdict {
  const hidden = decodedBase64(text)
  if (hidden === undefined && isPlain(text)) return 0
  const known = cache.get(text)
  if (known !== undefined) return known
  const verdict =
    scanReadings(text) | (hidden === undefined || isPlain(hidden) ? 0 : scanReadings(hidden))
  cache.set(text, verdict)
  return verdict
}

const isPlain = (text: string): boolean => ONE_WORD.test(text) || PLAIN.test(text)

function scanReadings(text: string): Verdict {
  const decoded = decodedOnce(text)
  const compact = withoutPadding(decoded ?? text)
  return scanReading(text) | scanReading(decoded) | scanReading(compact)
}

function scanReading(text: string | undefined): Verdict {
  if (text === undefined) return 0
  let verdict = 0
  for (let index = 0; index < SETS.length; index++)
    verdict |= (SETS[index]?.scan(text) ?? 0) << (SHIFTS[index] ?? 0)
  return verdict
}

const NONE: readonly SignatureId[] = []

/**
 * Creates the reader for the verdict of a request, the union of the verdicts of its texts. Scores
 * are added up by category. The reader returns the rule with the highest score for each category
 * that reaches the threshold, in the order of `categories`.
 */
export function createVerdictReader({
  threshold,
  categories,
}: Pick<Required<SignaturesDefinition>, 'threshold' | 'categories'>) {
  return function signaturesIn(verdict: Verdict): readonly SignatureId[] {
    if (verdict === 0) return NONE
    return categories.flatMap((category) => {
      const matched = SIGNATURES.filter((rule) => rule.category === category && verdict & rule.bit)
      const sum = matched.reduce((total, { score }) => total + score, 0)
      if (sum < threshold) return NONE
      return matched.reduce((one, other) => (other.score > one.score ? other : one)).id
    })
  }
}

/** Escapes of URLs, HTML (numeric, and the names that can hide a scheme) and JavaScript. */
const ESCAPE =
  /%([0-7][0-9a-f])|%u00([0-7][0-9a-f])|&#x0{0,6}([0-7]?[0-9a-f])(?:;|(?![0-9a-f]))|&#0{0,6}(\d{1,3})(?:;|(?!\d))|&(colon|tab|newline|lpar|rpar|quot|apos|sol|bsol);|\\(?:x|u00|u\{)([0-7][0-9a-f])\}?/gi
const NAMED: Readonly<Record<string, string>> = {
  colon: ':',
  tab: '\t',
  newline: '\n',
  lpar: '(',
  rpar: ')',
  quot: '"',
  apos: "'",
  sol: '/',
  bsol: '\\',
}
const FIRST_BEYOND_ASCII = 0x80
const LESS_THAN = 0x3c
/** Every escape starts with one of these. */
const ESCAPING = /[%&\\]/

/**
 * Returns the text with its escapes decoded; undefined if decoding changes nothing. Decodes only
 * ASCII, because signatures contain only ASCII. Never decodes an HTML entity to `<`: an entity is
 * text and does not start a tag.
 */
function decodedOnce(text: string): string | undefined {
  if (!ESCAPING.test(text)) return undefined
  const decoded = text.replace(ESCAPE, (written, ...groups: (string | undefined)[]) => {
    const [url, wideUrl, hexEntity, entity, name, script] = groups
    if (name !== undefined) return NAMED[name.toLowerCase()] ?? written
    const hex = url ?? wideUrl ?? hexEntity ?? script
    const code = hex === undefined ? Number(entity) : Number.parseInt(hex, 16)
    const isEntity = hexEntity !== undefined || entity !== undefined
    if (code >= FIRST_BEYOND_ASCII || (isEntity && code === LESS_THAN)) return written
    return String.fromCharCode(code)
  })
  return decoded === text ? undefined : decoded
}

/** Shorter texts are words, and decode to too little for an attack. */
const MIN_CHARS = 12
/** First characters of an encoded text that starts with a printable character or white space. */
const START = /^[CDI-Za-f]/
/** Both alphabets. A form decodes `+` to a space. */
const BASE64 = /^[\w+/ -]*={0,2}$/
const HEAD_CHARS = 12
/** Words and identifiers seldom decode to this. */
const PRINTABLE = /^[\t\n\r\x20-\x7e]*$/

/**
 * Returns the text that a text in Base64 encodes, one character for each byte; undefined if it is no
 * Base64, or encodes no text.
 */
function decodedBase64(text: string): string | undefined {
  if (text.length < MIN_CHARS || !START.test(text)) return undefined
  const head = decoded(text.slice(0, HEAD_CHARS))
  if (head === undefined || !PRINTABLE.test(head) || !BASE64.test(text)) return undefined
  return decoded(text)
}

function decoded(text: string): string | undefined {
  const standard = text.replace(/[- _]/g, (character) => (character === '_' ? '/' : '+'))
  try {
    return atob(standard)
  } catch {
    return undefined
  }
}

/** A text without one of these has no padding. */
const PADDING = /\s{3}|([;|&"'`(),+~!^<>=/-])\1\1|\/\*/
const BLANKS = /(?<=[^\S\n])[^\S\n]{1,9999}/g
const AROUND_NEWLINES = /[^\S\n](?=\n)|(?<=\n)[^\S\n]/g
/** A third character of a kind. Two of a kind have a meaning of their own, such as `--` and `||`. */
const REPEATED = /([;|&"'`(),+~!^<>=/-])(?<=\1\1\1)|(?<=\n)\n/g

/**
 * Returns the text with comments of SQL and JavaScript as one space, with white space as one space
 * or newline, and with at most two equal separators in a row; undefined if this changes nothing.
 */
function withoutPadding(text: string): string | undefined {
  if (!PADDING.test(text)) return undefined
  const compact = withoutComments(text)
    .replace(BLANKS, '')
    .replace(AROUND_NEWLINES, '')
    .replace(REPEATED, '')
  return compact === text ? undefined : compact
}

function withoutComments(text: string): string {
  let compact = ''
  let at = 0
  let open = text.indexOf('/*')
  while (open !== -1) {
    const close = text.indexOf('*/', open + 2)
    if (close === -1) break
    compact += `${text.slice(at, open)} `
    at = close + 2
    open = text.indexOf('/*', at)
  }
  return compact + text.slice(at)
}
