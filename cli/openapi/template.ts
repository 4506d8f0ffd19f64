/** Converts path templates of OpenAPI to the patterns of the router. */
import { isPathPattern } from '../../src/http/path-pattern.ts'
import { createNames } from './names.ts'

/** A parameter of a pattern, and how its text contains the parameter of the document. */
export interface PathParameter {
  /** In the pattern. */
  readonly name: string
  /** In the document; undefined for a segment that is fixed. */
  readonly declared: string | undefined
  readonly prefix: string
  readonly suffix: string
}

export interface PathPattern {
  readonly path: string
  readonly parameters: readonly PathParameter[]
  /** Query parameters that every request must have: `beta=true` of `/messages?beta=true`. */
  readonly query: ReadonlyMap<string, string>
}

const WHOLE = /^\{([^{}]+)\}$/
const PARTIAL = /^([^{}]*)\{([^{}]+)\}([^{}]*)$/
/** A segment that the router would read as a pattern, although it is a literal: `items:search`, `*`. */
const FIXED = /^[^{}/?#]*[:*][^{}/?#]*$/

/** An expression of the router can match slashes, and its text cannot contain one. */
const IN_SEGMENT = '[^\\x2f]+'

/** Returns the pattern, or why there is none. */
export function patternOf(whole: string): PathPattern | string {
  if (whole.includes('#')) return 'it contains "#", which no request sends; remove the fragment'
  const [template = '', ...rest] = whole.split('?')
  const fixed = [...new URLSearchParams(rest.join('?'))]
  const query = new Map(fixed)
  if (query.size < fixed.length) return 'its query has the same parameter twice; remove one'
  if (fixed.flat().some((text) => /[{}]/.test(text)))
    return 'its query contains a template expression; declare it as a query parameter'
  const parameters: PathParameter[] = []
  const unused = createNames([])
  const segments: string[] = []
  for (const segment of template.split('/')) {
    const [, prefix = '', declared, suffix = ''] = PARTIAL.exec(segment) ?? []
    const isFixed = declared === undefined && FIXED.test(segment)
    if (declared === undefined && !isFixed) {
      if (/[{}]/.test(segment))
        return `the segment ${segment} has more than one parameter, or a brace without its pair; write a route for it in the policy`
      segments.push(segment)
      continue
    }
    if (declared?.startsWith('+'))
      return `the parameter {${declared}} may contain slashes; write a route for it in the policy`
    const name = unused((declared ?? 'fixed').replaceAll(/\W/g, '_'))
    parameters.push({ name, declared, prefix, suffix })
    segments.push(
      WHOLE.test(segment) ? `:${name}` : expressionFor(name, declared, prefix, suffix, segment),
    )
  }
  const path = segments.join('/')
  if (!isPathPattern(path))
    return 'it is not a path that the router can match; correct it, or write a route for it in the policy'
  return { path, parameters, query }
}

function expressionFor(
  name: string,
  declared: string | undefined,
  prefix: string,
  suffix: string,
  segment: string,
): string {
  const text =
    declared === undefined ? escaped(segment) : `${escaped(prefix)}${IN_SEGMENT}${escaped(suffix)}`
  return `:${name}{${text}}`
}

const escaped = (text: string): string => text.replace(/[.*+?^$()|[\]\\]/g, '\\$&')

/**
 * Sorts literals before parameters, segment by segment, as OpenAPI prefers concrete paths. Names of
 * parameters decide only between patterns that match the same paths.
 */
export function comparePatterns(one: string, other: string): number {
  const [before, after] = [withoutNames(one).split('/'), withoutNames(other).split('/')]
  for (let index = 0; index < Math.max(before.length, after.length); index += 1) {
    const [left, right] = [before[index], after[index]]
    if (left === right) continue
    if (left === undefined) return -1
    if (right === undefined) return 1
    return rankOf(left) - rankOf(right) || compareText(left, right)
  }
  return compareText(one, other)
}

/** Removes the names of parameters. Patterns that differ only in these match the same paths. */
export const withoutNames = (pattern: string): string => pattern.replaceAll(/\/:\w+/g, '/:')

function compareText(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

function rankOf(segment: string): number {
  if (!segment.startsWith(':')) return 0
  if (!segment.includes('{')) return 2
  return 1
}
