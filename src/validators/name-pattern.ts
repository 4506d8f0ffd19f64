/** Patterns of names with at most one `*`, which matches one character or more. */

import * as z from 'zod/mini'
import { superRefine } from './checks.ts'
import { text } from './schema-parts.ts'

const MAX_PATTERN_CHARS = 512
const MAX_MAP_ENTRIES = 500
const MAX_MAPPED_NAMES = 20

const hasOneStar = (pattern: string) => pattern.indexOf('*') === pattern.lastIndexOf('*')

export const namePattern = text(MAX_PATTERN_CHARS).check(
  z.refine(hasOneStar, 'must contain at most one *'),
)

/** A name, or names, for each name or pattern. */
export const nameMap = z
  .record(
    namePattern,
    z.union([namePattern, z.array(namePattern).check(z.maxLength(MAX_MAPPED_NAMES))]),
  )
  .check(
    superRefine((map, context) => {
      const patterns = Object.entries(map)
      if (patterns.length > MAX_MAP_ENTRIES) {
        context.addIssue(`must have at most ${MAX_MAP_ENTRIES} entries`)
      }
      for (const [pattern, to] of patterns) {
        if (pattern.includes('*') || !listOf(to).some((name) => name.includes('*'))) continue
        const message = 'must not contain * unless the pattern does'
        context.addIssue({ code: 'custom', path: [pattern], message })
      }
    }),
  )

export type NameMap = z.output<typeof nameMap>

const listOf = (to: string | readonly string[]) => (typeof to === 'string' ? [to] : to)

/** Returns the text that the `*` matches; undefined if `name` does not match. */
export function starIn(pattern: string, name: string): string | undefined {
  const at = pattern.indexOf('*')
  if (at === -1) return pattern === name ? '' : undefined
  const end = pattern.length - at - 1
  const matches =
    name.length >= pattern.length &&
    name.startsWith(pattern.slice(0, at)) &&
    name.endsWith(pattern.slice(at + 1))
  return matches ? name.slice(at, name.length - end) : undefined
}

/**
 * Creates a function that maps a name. An exact name has precedence; otherwise the first pattern
 * that matches applies. The `*` of a result is replaced by the text that the pattern's `*` matched.
 * A name without a match has no result.
 */
export function createNameMap(map: NameMap): (name: string) => readonly string[] {
  const exact = new Map<string, readonly string[]>()
  const patterns: [string, readonly string[]][] = []
  for (const [pattern, to] of Object.entries(map)) {
    if (pattern.includes('*')) patterns.push([pattern, listOf(to)])
    else exact.set(pattern, listOf(to))
  }
  return function mapName(name) {
    const names = exact.get(name)
    if (names !== undefined) return names
    for (const [pattern, to] of patterns) {
      const star = starIn(pattern, name)
      if (star !== undefined) return to.map((result) => result.replace('*', () => star))
    }
    return []
  }
}
