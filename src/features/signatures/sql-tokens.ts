/** Tokenizes a text as an SQL server would, as far as needed to detect an attack. */
import { endOfMatch, wordsOf } from './signature-set.ts'

/** Parentheses are skipped. A `call` is a name with a parenthesis after it. */
type SqlTokenKind =
  | 'number'
  | 'text'
  /** A string without a closing quote. The quote of the surrounding statement closes it. */
  | 'open_text'
  | 'word'
  | 'call'
  | 'comparison'
  | 'arithmetic'
  | 'logic'
  | 'comma'
  | 'semicolon'
  /** A comment that removes the rest of the statement. */
  | 'cut'
  | 'other'
  | 'end'

export interface SqlToken {
  readonly kind: SqlTokenKind
  /** Words are in lower case. For a string, its content. */
  readonly text: string
}

/** Maximum number of tokens. A break-out is visible in fewer; more would only cost time. */
const MAX_TOKENS = 24
/** White space, parentheses, and the marks of MySQL's executable comments (`/*!50000`). */
const BLANKS = /(?:[\s()\u00a0]|\/\*!\d{0,6}|\*\/)+/y
const NUMBER = /0x[0-9a-f]+|\d+(?:\.\d*)?(?:e[+-]?\d{1,4})?(?![a-z_])|\.\d+/iy
const WORD = /[a-z_@$\u00aa-\u1fff\u3040-\ud7a3][\w@$.\u00aa-\u1fff\u3040-\ud7a3]{0,127}/iy
const CALLED = /[ \t]*\(/y
const COMPARISON = /<=>|[<>!:]=|<>|=|<|>/y
const LOGIC = /\|\||&&/y
/** Text that may remain after a comment that cuts the statement off. */
const REST = /[-+\s"')]*\w?$/y
const COMPARING = wordsOf('like rlike regexp ilike similar between in is glob')
/** Keywords that may precede a parenthesis and are not functions. */
const KEYWORDS = wordsOf(
  'union all distinct select where having from by limit values not into order group waitfor',
  'delay table',
)
/** Unary operators. A row of them counts as one token. */
const SIGNS = wordsOf('not binary - + ~ !')
const JOINING = wordsOf('and or xor div mod')

const END: SqlToken = { kind: 'end', text: '' }

/** Returns the token at an index, counted from the start place; `end` after the last token. */
export type SqlTokens = (index: number) => SqlToken

/** Tokenizes `text` from `start`. Reads tokens only when they are requested. */
export function tokenizeSql(text: string, start: number): SqlTokens {
  const tokens: SqlToken[] = []
  let at = start
  let isOver = false

  function read(): void {
    at = skipBlanks(text, at)
    const token = at >= text.length ? END : tokenAt(text, at)
    isOver = token === END || token.kind === 'cut'
    if (!isRepeatedSign(token, tokens.at(-1))) tokens.push(token)
    at += lengthOf(token, text, at)
  }
  return function tokenOf(index) {
    while (!isOver && tokens.length <= index && tokens.length < MAX_TOKENS) read()
    return tokens[index] ?? END
  }
}

/** Reports whether a sign follows a sign, which attacks repeat to use up the tokens. */
function isRepeatedSign({ kind, text }: SqlToken, last: SqlToken | undefined): boolean {
  return (
    (kind === 'arithmetic' || kind === 'word') && SIGNS.has(text) && SIGNS.has(last?.text ?? '')
  )
}

/** Returns the place after white space and comments. Stops before a comment without an end. */
function skipBlanks(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    const blank = endOfMatch(BLANKS, text, at)
    const end = skipComment(text, blank)
    if (end === at) return at
    at = end
  }
  return at
}

function skipComment(text: string, at: number): number {
  if (text.startsWith('/*', at)) {
    const close = text.indexOf('*/', at + 2)
    return close === -1 ? at : close + 2
  }
  if (text[at] !== '#' && !text.startsWith('--', at)) return at
  const line = text.indexOf('\n', at)
  return line === -1 ? at : line + 1
}

const OTHER: SqlToken = { kind: 'other', text: '' }
const CUT: SqlToken = { kind: 'cut', text: '' }

function tokenAt(text: string, at: number): SqlToken {
  const character = text[at] ?? ''
  if (character === '#' || text.startsWith('--', at)) {
    const rest = at + (character === '#' ? 1 : 2)
    return endOfMatch(REST, text, rest) === text.length ? CUT : OTHER
  }
  if (text.startsWith('/*', at)) return CUT
  if (character === "'" || character === '"') return quoted(text, at, character)
  const number = matched(NUMBER, text, at)
  if (number !== '') return { kind: 'number', text: number }
  const word = matched(WORD, text, at).toLowerCase()
  if (word !== '') {
    if (JOINING.has(word)) return { kind: 'logic', text: word }
    if (COMPARING.has(word)) return { kind: 'comparison', text: word }
    const end = at + word.length
    const isCall = !KEYWORDS.has(word) && endOfMatch(CALLED, text, end) > end
    return { kind: isCall ? 'call' : 'word', text: word }
  }
  const logic = matched(LOGIC, text, at)
  if (logic !== '') return { kind: 'logic', text: logic }
  const comparison = matched(COMPARISON, text, at)
  if (comparison !== '') return { kind: 'comparison', text: comparison }
  if (character === ',') return { kind: 'comma', text: character }
  if (character === ';') return { kind: 'semicolon', text: character }
  if ('+-*/%^|&~!'.includes(character)) return { kind: 'arithmetic', text: character }
  return { kind: 'other', text: character }
}

const matched = (pattern: RegExp, text: string, at: number): string =>
  text.slice(at, endOfMatch(pattern, text, at))

function quoted(text: string, at: number, quote: string): SqlToken {
  const close = text.indexOf(quote, at + 1)
  if (close === -1) return { kind: 'open_text', text: text.slice(at + 1) }
  return { kind: 'text', text: text.slice(at + 1, close) }
}

function lengthOf({ kind, text: own }: SqlToken, text: string, at: number): number {
  if (kind === 'text') return own.length + 2
  return kind === 'open_text' ? text.length - at : Math.max(own.length, 1)
}
