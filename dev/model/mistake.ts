/** Mistakes in a model's text, and their positions. */
import type { ModelMistake } from '../../src/access/relations/model.ts'

/** Line and column count from 1. */
export interface TextMistake {
  readonly line: number
  readonly column: number
  readonly why: string
}

/** The text is not a model that the gateway can use. */
export class ModelTextInvalid extends Error {
  override readonly name = 'ModelTextInvalid'
  readonly mistakes: readonly TextMistake[]

  constructor(mistakes: readonly TextMistake[]) {
    super(mistakes.map(({ line, column, why }) => `${line}:${column}: ${why}`).join('\n'))
    this.mistakes = mistakes
  }
}

/**
 * Returns the position of a mistake in the model's text: the name in `define viewer` or `type
 * document`, the line of a condition, or the schema line. If it is not found, 1:1.
 */
export function locate(mistake: ModelMistake, text: string): TextMistake {
  const { at, why } = mistake
  const { line, column } = placeOf(mistake, text.split('\n')) ?? { line: 1, column: 1 }
  return { line, column, why: at === 'model' ? why : `${at}: ${why}` }
}

function placeOf({ at, condition, isDuplicate }: ModelMistake, lines: readonly string[]) {
  if (at === 'model') {
    return condition === undefined
      ? find(lines, /^\s*schema\s+(\S+)/)
      : find(lines, /^\s*condition\s+(\w+)/, condition)
  }
  const [type = '', relation] = at.split('#')
  // The mistake is at the last definition of a duplicate type.
  const typeAt = find(lines, TYPE, type, isDuplicate)
  if (typeAt === undefined || relation === undefined) return typeAt
  const below = lines.slice(typeAt.line)
  const end = below.findIndex((line) => TYPE.test(line))
  const found = find(end === -1 ? below : below.slice(0, end), DEFINE, relation)
  return found === undefined ? typeAt : { ...found, line: typeAt.line + found.line }
}

const TYPE = /^\s*(?:extend\s+)?type\s+([^\s#]+)/
const DEFINE = /^\s*define\s+([^\s:]+)/

/**
 * Returns the position of the first (or last) line with `name` as the captured group, or with any
 * group if `name` is undefined.
 */
function find(lines: readonly string[], pattern: RegExp, name?: string, last = false) {
  const places = lines.flatMap((text, index) => {
    const match = pattern.exec(text)
    if (match?.[1] === undefined || (name !== undefined && match[1] !== name)) return []
    return [{ line: index + 1, column: match[0].length - match[1].length + 1 }]
  })
  return last ? places.at(-1) : places[0]
}
