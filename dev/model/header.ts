/** How every model begins: two lines, told before the parser's own words about them. */
import type { TextMistake } from './mistake.ts'

const MODEL_LINE = 'model'
const SCHEMA_LINE = 'schema 1.1'
const HEADER = [MODEL_LINE, SCHEMA_LINE]

/**
 * The first line of a text that is not what a model begins with: `model`, then `schema 1.1`. Empty
 * lines and comments do not count. Undefined where the text begins well.
 */
export function headerMistake(text: string): TextMistake | undefined {
  const all = text.split('\n')
  const lines = all
    .map((content, index) => ({ content, line: index + 1 }))
    .filter(({ content }) => /^\s*[^\s#]/.test(content))
  for (const [index, expected] of HEADER.entries()) {
    const { content, line } = lines[index] ?? { content: '', line: all.length }
    if (wordsOf(content) === expected) continue
    const why = `"${expected}" belongs here: a model begins with the lines "${HEADER.join('" and "')}"`
    return { line, column: content.search(/\S|$/) + 1, why }
  }
  return undefined
}

/** A line without its comment and its indentation. */
const wordsOf = (line: string): string => line.replace(/ #.*/, '').trim().replace(/\s+/g, ' ')
