/** Paths of claims in a token, as the configuration of an issuer names them. */

import * as z from 'zod/mini'
import { text } from './schema-parts.ts'

/** The names of nested members, outermost first. `*` means every member, or every item of a list. */
export type Path = readonly string[]

const MAX_NAME_CHARS = 256
/** Deeper than any known claim. */
const MAX_PATH_NAMES = 8
const MAX_SOURCES = 16

const name = text(MAX_NAME_CHARS)
const names = z.array(name).check(z.minLength(1), z.maxLength(MAX_PATH_NAMES))

export const shortPath = z
  .string()
  .check(
    z.refine(
      (path) => names.safeParse(parsePath(path)).success,
      `must be 1 to ${MAX_PATH_NAMES} names, none of them empty`,
    ),
  )

/** A path: text in one of the short forms, or an array of names. */
export const claimPath = z.union([shortPath, names], {
  error: 'must be the name of a claim, or the array of names that leads to it',
})

/** One path, or an array of several. An array of texts alone is one path. */
export const claimSources = z.union(
  [
    shortPath,
    names,
    z.array(z.union([shortPath, names])).check(
      z.maxLength(MAX_SOURCES),
      z.refine((sources) => sources.some((path) => typeof path !== 'string')),
    ),
  ],
  { error: 'must be a claim, the array of names that leads to it, or an array of such arrays' },
)

export type ClaimPath = z.output<typeof claimPath>
export type ClaimSources = z.output<typeof claimSources>

/**
 * Parses a short form. A leading slash begins a JSON Pointer (RFC 6901). A name with a colon or a
 * slash, such as `https://example.com/roles`, is one claim. Otherwise dots separate names.
 */
export function parsePath(path: ClaimPath): Path {
  if (typeof path !== 'string') return path
  if (path.startsWith('/')) {
    const names = path.slice(1).split('/')
    return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  }
  return /[:/]/.test(path) ? [path] : path.split('.')
}

export function parsePaths(sources: ClaimSources): readonly Path[] {
  if (typeof sources === 'string') return [parsePath(sources)]
  const isPath = (parts: typeof sources): parts is string[] =>
    parts.every((part) => typeof part === 'string')
  return isPath(sources) ? [sources] : sources.map(parsePath)
}
