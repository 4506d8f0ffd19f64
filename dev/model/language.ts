/** Converts OpenFGA's language to JSON, and checks it by OpenFGA's rules and the gateway's. */
import { transformer, validator } from '@openfga/syntax-transformer'
import { compileModel } from '../../src/access/relations/compile-model.ts'
import { ModelInvalid } from '../../src/access/relations/model.ts'
import { headerMistake } from './header.ts'
import { locate, ModelTextInvalid, type TextMistake } from './mistake.ts'

/** The errors that OpenFGA's tools report. Lines and columns count from 0. */
interface Collected {
  readonly errors: readonly {
    readonly msg: string
    readonly line?: { readonly start: number }
    readonly column?: { readonly start: number }
  }[]
}

/**
 * Returns a model's JSON, in the form that the gateway and OpenFGA's API accept. Throws
 * {@link ModelTextInvalid} with all syntax mistakes or, if there are none, all other mistakes.
 */
export function modelOf(text: string): object {
  const unread = unreadable(text)
  if (unread.length > 0) throw new ModelTextInvalid(unread)
  const json = transformed(text)
  const own = mistakesOf(json, text)
  const lines = new Set(own.map(({ line }) => line))
  // If both report a mistake in the same line, only the gateway's message is used.
  const others = mistakesOfValidator(text).filter(({ line }) => !lines.has(line))
  const mistakes = [...own, ...others].sort((a, b) => a.line - b.line || a.column - b.column)
  if (mistakes.length > 0) throw new ModelTextInvalid(mistakes)
  return json
}

/** The same limit as in OpenFGA. */
const MAX_CHARS = 262_144
/**
 * The maximum nesting of a model. With thousands of parentheses, the parser would take a minute.
 */
const MAX_PARENTHESES = 10

/** A comment as the transformer recognizes it: on a line of its own, or after a space. */
const COMMENT = /(^\s*| )#.*/

/**
 * Returns mistakes that must be found before the transformer runs: text that would take it minutes;
 * modules, for which it returns no schema; and names such as `__proto__`, which it drops.
 */
function unreadable(text: string): readonly TextMistake[] {
  if (text.length > MAX_CHARS)
    return [{ line: 1, column: 1, why: `is longer than ${MAX_CHARS} characters` }]
  return text.split('\n').flatMap((content, index) => {
    const [, before = '', word, name = ''] =
      /^(\s*(module|type|define)\s+)([^\s:#]+)/.exec(content) ?? []
    const at = { line: index + 1, column: before.length + 1 }
    if (word === 'module')
      return [{ ...at, why: 'modules are not supported; write one model of schema 1.1' }]
    if (Object.hasOwn(Object.prototype, name))
      return [{ ...at, why: `${name} cannot be a name, because OpenFGA's tools drop it` }]
    const tooDeep = parenthesisBeyond(content.replace(COMMENT, ''), MAX_PARENTHESES)
    return tooDeep === undefined
      ? []
      : [{ ...at, column: tooDeep + 1, why: `is nested deeper than ${MAX_PARENTHESES} levels` }]
  })
}

/** Returns the index of the first parenthesis that is nested in more than `levels` others. */
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
    // After a wrong header, the parser reports misleading mistakes.
    const header = headerMistake(text)
    throw new ModelTextInvalid(header === undefined ? collected(error) : [header])
  }
  if ('type_definitions' in json) return json
  const line = text.split('\n').length
  throw new ModelTextInvalid([{ line, column: 1, why: 'type expected: the model has no types' }])
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

/** The parser quotes text that it did not understand, possibly the whole rest of the file. */
const MAX_WORDS_CHARS = 200

/**
 * Returns the mistakes that an error contains, or else the error's own message, so that the text is
 * always refused.
 */
function collected(error: unknown): readonly TextMistake[] {
  const { errors } = error as Partial<Collected>
  if (!Array.isArray(errors)) return [{ line: 1, column: 1, why: (error as Error).message }]
  return (errors as Collected['errors']).map(({ msg, line, column }) => ({
    line: Math.max(line?.start ?? 0, 0) + 1,
    column: Math.max(column?.start ?? 0, 0) + 1,
    why: msg.length > MAX_WORDS_CHARS ? `${msg.slice(0, MAX_WORDS_CHARS)}…` : msg,
  }))
}
