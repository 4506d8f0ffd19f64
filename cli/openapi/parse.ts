/** Parses the text of a document: JSON, or YAML 1.2 with the merge keys of YAML 1.1. */

import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml'
import { jsonIn } from '../json.ts'

/** A larger document repeats itself through aliases, or is not written for people. */
const MAX_NODES = 20_000_000
const MAX_DEPTH = 500
/** The tokens of valid JSON that decide what is a key. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g
const SCHEMA = CORE_SCHEMA.withTags(mergeTag)

/**
 * Returns the value. Throws an `Error` for text that is neither JSON nor YAML, for an object with two
 * members of one name, and for aliases that make a value endless.
 */
export function parseText(text: string): unknown {
  const value = parseJson(text) ?? parseYaml(text)
  checkSize(value)
  return value
}

/** The library's own message quotes the text of the document over several lines. */
function parseYaml(text: string): unknown {
  try {
    return load(text, { schema: SCHEMA })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { reason, mark } = error
    const place = mark ? `line ${mark.line + 1}: ` : ''
    throw new Error(`is neither JSON nor YAML: ${place}${reason}`)
  }
}

function parseJson(text: string): unknown {
  const value = jsonIn(text)
  if (value !== undefined) refuseDuplicates(text)
  return value
}

/** `JSON.parse` uses the last of two members with one name. Other programs use the first. */
function refuseDuplicates(json: string): void {
  const open: (Set<string> | undefined)[] = []
  let before = ''
  for (const match of json.matchAll(TOKEN)) {
    const [token] = match
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token.startsWith('"') && (before === '{' || before === ',')) {
      const names = open.at(-1)
      const name = names && (JSON.parse(token) as string)
      if (name !== undefined && names?.has(name)) {
        const line = json.slice(0, match.index).split('\n').length
        throw new Error(`line ${line}: an object has two members named ${token}; remove one`)
      }
      if (name !== undefined) names?.add(name)
    }
    before = token
  }
}

/** Aliases of YAML can repeat a value without end. */
function checkSize(root: unknown): void {
  let nodes = 0
  const visit = (value: unknown, depth: number): void => {
    nodes += 1
    if (depth > MAX_DEPTH || nodes > MAX_NODES)
      throw new Error(
        depth > MAX_DEPTH
          ? `values are nested more than ${MAX_DEPTH} levels deep, or an alias contains itself; reduce the nesting`
          : `the document has more than ${MAX_NODES} values after its aliases are expanded; use fewer aliases`,
      )
    if (typeof value !== 'object' || value === null) return
    for (const member of Object.values(value)) visit(member, depth + 1)
  }
  visit(root, 0)
}
