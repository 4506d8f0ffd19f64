/** From OpenFGA's language to its JSON, checked by its own rules and by the gateway's. */
import { transformer, validator } from '@openfga/syntax-transformer'
import { compileModel } from '../../src/relations/compile-model.ts'
import { ModelInvalid } from '../../src/relations/model.ts'
import { headerMistake } from './header.ts'
import { locate, ModelTextInvalid, type TextMistake } from './mistake.ts'

/** What OpenFGA's tools collect, with lines and columns that count from 0. */
interface Collected {
  readonly errors: readonly {
    readonly msg: string
    readonly line?: { readonly start: number }
    readonly column?: { readonly start: number }
  }[]
}

/**
 * A model's JSON as the gateway takes it, and OpenFGA's API too. Throws {@link ModelTextInvalid} with
 * every mistake: those of the syntax or, if there are none, those of what it says.
 */
export function modelOf(text: string): object {
  const unread = unreadable(text)
  if (unread.length > 0) throw new ModelTextInvalid(unread)
  const json = transformed(text)
  const own = mistakesOf(json, text)
  const lines = new Set(own.map(({ line }) => line))
  // Of two that complain of one line, the gateway's words will do.
  const others = mistakesOfValidator(text).filter(({ line }) => !lines.has(line))
  const mistakes = [...own, ...others].sort((a, b) => a.line - b.line || a.column - b.column)
  if (mistakes.length > 0) throw new ModelTextInvalid(mistakes)
  return json
}

/** OpenFGA takes no larger model either. */
const MAX_CHARS = 262_144
/** As deep as a model may be. Of thousands, the parser would take a minute. */
const MAX_PARENTHESES = 10

/** As the transformer finds it: a line of its own, or after a space. */
const COMMENT = /(^\s*| )#.*/

/**
 * What is better not given to the transformer: what would take it minutes; modules, which it gives no
 * schema; and names such as `__proto__`, which it loses.
 */
function unreadable(text: string): readonly TextMistake[] {
  if (text.length > MAX_CHARS)
    return [{ line: 1, column: 1, why: `is longer than ${MAX_CHARS} characters` }]
  return text.split('\n').flatMap((content, index) => {
    const [, before = '', word, name = ''] =
      /^(\s*(module|type|define)\s+)([^\s:#]+)/.exec(content) ?? []
    const at = { line: index + 1, column: before.length + 1 }
    if (word === 'module')
      return [{ ...at, why: 'modules are not read; write one model of schema 1.1' }]
    if (Object.hasOwn(Object.prototype, name))
      return [{ ...at, why: `${name} cannot be a name: OpenFGA's tools would lose it` }]
    const tooDeep = parenthesisBeyond(content.replace(COMMENT, ''), MAX_PARENTHESES)
    return tooDeep === undefined
      ? []
      : [{ ...at, column: tooDeep + 1, why: `is nested deeper than ${MAX_PARENTHESES} levels` }]
  })
}

/** Index of the first parenthesis within more than `levels` others. */
function parenthesisBeyond(line: string, levels: number): number | undefined {
  let open = 0
  for (const { 0: parenthesis, index } of line.matchAll(/[()]/g)) {
    open += parenthesis === '(' ? 1 : -1
    if (open > levels) return index
  }
  return undefined
}

function transformed(text: string): object {
  let json: object
  try {
    json = transformer.transformDSLToJSONObject(text)
  } catch (error) {
    // Where the beginning is wrong, the parser is lost from there on.
    const header = headerMistake(text)
    throw new ModelTextInvalid(header === undefined ? collected(error) : [header])
  }
  if ('type_definitions' in json) return json
  const line = text.split('\n').length
  throw new ModelTextInvalid([{ line, column: 1, why: 'a type belongs here: the model has none' }])
}

function mistakesOf(json: object, text: string): readonly TextMistake[] {
  try {
    compileModel(json)
    return []
  } catch (error) {
    if (!(error instanceof ModelInvalid)) throw error
    return error.found.map((mistake) => locate(mistake, text))
  }
}

function mistakesOfValidator(text: string): readonly TextMistake[] {
  try {
    validator.validateDSL(text)
    return []
  } catch (error) {
    return collected(error)
  }
}

/** The parser quotes what it did not understand, and that may be all the rest. */
const MAX_WORDS_CHARS = 200

/** Of an error that collects nothing, its own message: the text is refused in any case. */
function collected(error: unknown): readonly TextMistake[] {
  const { errors } = error as Partial<Collected>
  if (!Array.isArray(errors)) return [{ line: 1, column: 1, why: (error as Error).message }]
  return (errors as Collected['errors']).map(({ msg, line, column }) => ({
    line: Math.max(line?.start ?? 0, 0) + 1,
    column: Math.max(column?.start ?? 0, 0) + 1,
    why: msg.length > MAX_WORDS_CHARS ? `${msg.slice(0, MAX_WORDS_CHARS)}…` : msg,
  }))
}
