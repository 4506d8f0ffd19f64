/** Sample paths of a route's pattern: audit events have no path. */
import { coversHost, hostOf } from '../../src/http/host.ts'
import { expandOptional } from '../../src/http/path-pattern.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'

export interface Place {
  readonly path: string
  /** Undefined: a host that no route names. */
  readonly host: string | undefined
}

/** Values for parameters. A regular expression gets the first one that it matches. */
const VALUES = [
  'sample',
  '1',
  '1234',
  'a',
  'A',
  'ab',
  '2026-01-01',
  '00000000-0000-4000-8000-000000000000',
  'a@example.com',
  'sample.json',
]
const [SAMPLE = ''] = VALUES

/** Returns the routes that a request of the pattern could match, by its path. */
export const overlapping = <Route extends Pick<PolicyRoute, 'path'>>(
  pattern: string,
  routes: readonly Route[],
): readonly Route[] =>
  routes.filter(({ path }) =>
    expandOptional(pattern).some((one) =>
      expandOptional(path).some(
        (other) => commonPaths(one.split('/'), other.split('/'))?.length !== 0,
      ),
    ),
  )

/**
 * Returns paths and hosts that together lead to every route which a request of the pattern could match. A
 * policy distinguishes paths only by the segments of its patterns, and hosts by their names. A pattern without a host
 * matches every host. Returns undefined if no known value matches a regular expression, so that some route would be
 * left out.
 */
export function placesOf(
  pattern: Pick<PolicyRoute, 'path'> & { readonly host: string | undefined },
  routes: readonly Pick<PolicyRoute, 'path' | 'host'>[],
): readonly Place[] | undefined {
  const paths = new Set<string>()
  for (const own of expandOptional(pattern.path)) {
    for (const other of [own, ...routes.flatMap(({ path }) => expandOptional(path))]) {
      const found = commonPaths(own.split('/'), other.split('/'))
      if (found === undefined) return undefined
      for (const path of found) paths.add(path)
    }
  }
  const named = routes.flatMap(({ host }) =>
    host !== undefined && coversHost(pattern.host, host) ? [sampleHost(host)] : [],
  )
  const own = pattern.host === undefined ? undefined : sampleHost(pattern.host)
  const hosts = new Set([own, ...named])
  return [...paths].flatMap((path) => [...hosts].map((host) => ({ path, host })))
}

const sampleHost = (host: string): string => hostOf(`https://${host.replace('*', SAMPLE)}`)

/**
 * Returns paths that both patterns match, and spellings that only `one` matches but that an origin
 * could read as the other. None if there are none, undefined if one is not found.
 */
function commonPaths(
  one: readonly string[],
  other: readonly string[],
): readonly string[] | undefined {
  const segments: string[] = []
  const respelled: string[] = []
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    const [a, b] = [segmentAt(one, at), segmentAt(other, at)]
    const isEnd = (segment: string | undefined) => segment === undefined || segment === '*'
    // `/files/*` also matches `/files`.
    if (isEnd(a) && isEnd(b)) {
      const [short, long] = [segments.join('/'), [...segments, SAMPLE].join('/')]
      if (a === b) return at > 1 ? [short, long] : [long]
      return one.at(-1) === '*' ? [short, respelled.join('/'), `${short}/`] : [short]
    }
    if (a === undefined || b === undefined) return []
    const value = commonValue(a, b)
    if (value === null) return undefined
    if (value === undefined) return []
    segments.push(value)
    respelled.push(a === value ? value : value.toUpperCase())
  }
  const path = segments.join('/')
  return one.at(-1) === '*' ? [path, respelled.join('/'), `${path}/`] : [path, respelled.join('/')]
}

/** A wildcard repeats to the end of the path. */
const segmentAt = (segments: readonly string[], at: number): string | undefined =>
  segments[at] ?? (segments.at(-1) === '*' ? '*' : undefined)

/** Returns undefined if no value is common, null if none was found. */
function commonValue(a: string, b: string): string | null | undefined {
  const [isFreeA, isFreeB] = [a, b].map((segment) => /^:|^\*$/.test(segment))
  if (!isFreeA && !isFreeB) return a === b ? a : undefined
  if (!isFreeA) return expressionOf(b).test(a) ? a : undefined
  if (!isFreeB) return expressionOf(a).test(b) ? b : undefined
  const value = VALUES.find((text) => expressionOf(a).test(text) && expressionOf(b).test(text))
  return value ?? null
}

const expressionOf = (segment: string): RegExp =>
  new RegExp(`^(?:${/\{(.+)\}/.exec(segment)?.[1] ?? '.+'})$`)

/** HEAD is decided like GET. */
export const methodOf = (method: string): string => (method === 'HEAD' ? 'GET' : method)

/** Returns the rows of a policy that decide requests of this method and pattern. */
export const rowsOf = ({ routes }: Policy, method: string, pattern: string) =>
  routes.filter((row) => row.path === pattern && row.method === methodOf(method))
