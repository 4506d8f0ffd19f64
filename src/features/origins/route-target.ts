/** The path that an origin receives for a request: without a prefix, or another one. */
import { Denied } from '../../errors.ts'
import { ambiguity, targetOf } from '../../http/path.ts'
import { type Mistake, type MistakeCode, mistakeAt, withPath } from '../../problems/mistake.ts'

export interface TargetOptions {
  /** The pattern of the route. */
  readonly path: string
  readonly stripPrefix?: string | undefined
  readonly rewrite?: string | undefined
}

/** Returns path and query for the origin. */
export type RouteTarget = (request: Pick<Request, 'url'>) => string

/**
 * Creates the function that returns path and query for the origin. Undefined if the origin receives
 * what was sent. It moves whole segments, as they were sent and still percent-encoded: a segment
 * contains no slash, and `canonicalPath` has refused those that a server could read as one, and dot
 * segments. The query does not change.
 *
 * The function throws `Denied` (`ambiguous_path`) if the result is ambiguous, or the request does
 * not have the segments of the pattern.
 */
export function routeTarget({
  path,
  stripPrefix,
  rewrite,
}: TargetOptions): RouteTarget | undefined {
  if (stripPrefix === undefined && rewrite === undefined) return undefined
  const pattern = segmentsOf(path)
  const move =
    rewrite === undefined
      ? dropper(segmentsOf(stripPrefix ?? '').length)
      : mover(pattern, segmentsOf(rewrite))
  return function targetFor({ url }) {
    const target = targetOf(url)
    const query = target.indexOf('?')
    const sent = query < 0 ? target : target.slice(0, query)
    const result = `/${move(segmentsOf(sent)).join('/')}`
    if (ambiguity(result) !== undefined) throw refused()
    return query < 0 ? result : result + target.slice(query)
  }
}

const refused = () => new Denied({ code: 'ambiguous_path', check: 'rewrite' })

type Move = (segments: readonly string[]) => readonly string[]

const dropper =
  (count: number): Move =>
  (segments) =>
    segments.slice(count)

/** Fills the parameters of `rewrite` with the segments of the request. */
function mover(pattern: readonly string[], rewrite: readonly string[]): Move {
  const isOpen = pattern.at(-1) === '*'
  const fixed = isOpen ? pattern.length - 1 : pattern.length
  /** A text, the index of a segment, or -1 for all segments below the pattern. */
  const parts = rewrite.map((segment) => {
    if (segment === '*') return -1
    return segment.startsWith(':')
      ? pattern.findIndex((one) => nameOf(one) === segment.slice(1))
      : segment
  })
  return (segments) => {
    if (segments.length < fixed || (!isOpen && segments.length > fixed)) throw refused()
    return parts.flatMap((part) => {
      if (typeof part === 'string') return [part]
      return part < 0 ? segments.slice(fixed) : [segments[part] ?? '']
    })
  }
}

/** The name of a parameter; undefined for a literal. */
const nameOf = (segment: string): string | undefined => /^:(\w+)/.exec(segment)?.[1]

const segmentsOf = (path: string): string[] => path.split('/').slice(1)

/** Yields the mistakes of the settings. Their values are path patterns. */
export function* mistakesInTarget({
  path,
  stripPrefix,
  rewrite,
}: TargetOptions): Generator<Mistake> {
  if (stripPrefix !== undefined && rewrite !== undefined)
    yield withPath(
      mistakeAt('conflict', ['stripPrefix'], 'cannot be combined with rewrite; remove one of them'),
    )
  if (stripPrefix !== undefined && !path.startsWith(`${stripPrefix}/`) && path !== stripPrefix)
    yield withPath(
      mistakeAt('conflict', ['stripPrefix'], `${stripPrefix} is not the beginning of the path`),
    )
  if (rewrite === undefined) return
  const segments = segmentsOf(path)
  const known = segments.flatMap((segment) => nameOf(segment) ?? [])
  const inRewrite = (code: MistakeCode, what: string, names?: Pick<Mistake, 'given' | 'known'>) =>
    withPath(mistakeAt(code, ['rewrite'], what, names))
  for (const segment of segmentsOf(rewrite)) {
    if (segment === '*' && segments.at(-1) !== '*')
      yield inRewrite('conflict', '* requires a path that ends with *')
    if (!segment.startsWith(':')) continue
    const name = segment.slice(1)
    const parameter = segments.find((one) => nameOf(one) === name)
    if (!/^\w+$/.test(name))
      yield inRewrite('invalid_format', `${segment} must be the name of a parameter, such as :id`)
    else if (parameter === undefined)
      yield inRewrite('unknown_parameter', `the path has no parameter ${segment}`, {
        given: name,
        known,
      })
    else if (parameter.endsWith('?'))
      yield inRewrite('conflict', `${segment} is optional in the path; use two routes`)
  }
}
