/** Checks the two header lines of a model, for clearer messages than those of the parser. */
import type { TextMistake } from './mistake.ts'

const MODEL_LINE = 'model'
const SCHEMA_LINE = 'schema 1.1'
const HEADER = [MODEL_LINE, SCHEMA_LINE]

/**
 * Returns the first mistake in the header of a text, which must begin with `model` and `schema
 * 1.1`. Ignores empty lines and comments. Returns undefined if the header is correct.
 */
export function headerMistake(text: string): TextMistake | undefined {
  const all = text.split('\n')
  const lines = all
    .map((content, index) => ({ content, line: index + 1 }))
    .filter(({ content }) => /^\s*[^\s#]/.test(content))
  for (const [index, expected] of HEADER.entries()) {
    const { content, line } = lines[index] ?? { content: '', line: all.length }
    if (wordsOf(content) === expected) continue
    const why = `"${expected}" expected: a model begins with the lines "${HEADER.join('" and "')}"`
    return { line, column: content.search(/\S|$/) + 1, why }
  }
  return undefined
}

/** Returns a line without its comment and indentation. */
const wordsOf = (line: string): string => line.replace(/ #.*/, '').trim().replace(/\s+/g, ' ')
