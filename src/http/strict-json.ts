/** Strict JSON parser for untrusted text: refuses text that other parsers may read differently. */
import type { JsonCheck } from '../problems/checks.ts'

/** A text was refused. Contains no part of the text. */
export class JsonRefused extends Error {
  override readonly name = 'JsonRefused'
  readonly check: JsonCheck

  constructor(check: JsonCheck) {
    super(check)
    this.check = check
  }
}

interface JsonLimits {
  /**
   * Maximum nesting of containers: 0 allows only a scalar, 1 allows `{}` but not `{"a":[]}`. Default 16: deeper
   * than claims, metadata and configurations.
   */
  readonly maxDepth?: number
  /** A name that no object may have. Default: none. */
  readonly without?: string
}

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Parses a JSON text (RFC 8259) in linear time. Throws {@link JsonRefused} for duplicate names in
 * an object (`"a"` and `"\u0061"` are the same name), a byte order mark, and nesting deeper than
 * `maxDepth`, before it parses anything.
 *
 * Does NOT refuse numbers that overflow (`1e400` becomes Infinity), lone surrogates, or names such
 * as `__proto__`, which become own properties, except the name `without`: the schema of the value must
 * check these. A caller that decodes bytes first must use `ignoreBOM: true`: the decoder otherwise
 * removes the mark.
 */
export function parseStrictJson(
  text: string,
  { maxDepth = 16, without }: JsonLimits = {},
): unknown {
  try {
    refuseNesting(text, maxDepth, without)
    return JSON.parse(text) as unknown
  } catch (error) {
    // Without the cause, because the engine's message quotes the text.
    throw error instanceof JsonRefused ? error : new JsonRefused('syntax')
  }
}

/**
 * Throws {@link JsonRefused} as `parseStrictJson`, but not for a text that is no JSON. For a library that parses
 * the text by itself.
 */
export function refuseAmbiguousJson(text: string): void {
  try {
    parseStrictJson(text)
  } catch (error) {
    if (error instanceof JsonRefused && error.check !== 'syntax') throw error
  }
}

/** Checks nesting and names in one pass, with only as much grammar as this requires. */
function refuseNesting(text: string, maxDepth: number, without?: string): void {
  /** Names of each open object so far. Null for an array, or an object without names so far. */
  const open: (Set<string> | null)[] = []
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (open.length >= maxDepth) throw new JsonRefused('depth')
        open.push(null)
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop()
        break
      case QUOTE: {
        const end = endOfString(text, at)
        if (isColon(text, end + 1)) {
          if (open.length === 0) throw new JsonRefused('syntax')
          const name = decodeName(text, at, end)
          if (name === without) throw new JsonRefused('prototype_name')
          const names = open[open.length - 1]
          if (names?.has(name)) throw new JsonRefused('duplicate_name')
          if (names) names.add(name)
          else open[open.length - 1] = new Set([name])
        }
        at = end
      }
    }
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at
    if (code === BACKSLASH) at++
  }
  throw new JsonRefused('syntax')
}

/**
 * Reports whether the next character that is not white space is a colon. Skips all control characters:
 * `JSON.parse` refuses those that are no white space (RFC 8259 section 2).
 */
function isColon(text: string, from: number): boolean {
  let at = from
  while (text.charCodeAt(at) <= SPACE) at++
  return text.charCodeAt(at) === COLON
}

/** Throws a `SyntaxError` for an escape that JSON does not have. */
function decodeName(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end)
  return raw.includes('\\') ? (JSON.parse(text.slice(start, end + 1)) as string) : raw
}
