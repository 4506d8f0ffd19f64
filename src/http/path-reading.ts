/**
 * Paths that an origin could read as paths of another route. The router compares names exactly.
 * Origins ignore case, trailing slashes, dots, spaces, extensions and more, each in its own way.
 */
import {
  ANY,
  AT_THE_END,
  BEFORE_PATH_INFO,
  hasExtension,
  IN_THE_MIDDLE,
  isDefaultDocument,
  isScript,
  matchesToken,
  type Name,
  parseName,
  type Token,
} from './path-name.ts'
import { expandOptional } from './path-pattern.ts'

/**
 * How the origin compares the names of a route with those of a request. `loose`: as any common
 * server does. `distinct-extensions`: as `loose`, but `report.pdf` is not `report`, and
 * `docs/index.html` is not `docs`. `exact`: as the router does.
 */
export const ORIGIN_SPELLINGS = ['loose', 'distinct-extensions', 'exact'] as const
export type OriginSpelling = (typeof ORIGIN_SPELLINGS)[number]

/** A pattern without optional parameters. */
interface Shape {
  /** Literals are not folded. */
  readonly tokens: readonly Token[]
  /** It ends with `*`. */
  readonly isOpen: boolean
  /** It ends with a slash. */
  readonly isFolder: boolean
}

/** One way in which an origin could read paths of a route as paths of another route. */
export interface Reading {
  /** Tokens of the other route; literals are folded. */
  readonly tokens: readonly Token[]
  readonly isOpen: boolean
  /** Whether `name.ext` is read as `name`, and `/name/index.html` as `/name`. */
  readonly extensions: boolean
  /** Whether a script also serves paths below its name: `/admin.php/x` is `/admin.php`. */
  readonly pathInfo: boolean
}

/** How many paths of a route an origin could read in this way: none, some or all. */
type Chance = 'never' | 'sometimes' | 'always'

/**
 * Returns the ways in which an origin could read paths of the pattern `own` as paths of `other`,
 * although the router does not. `isBelow`: the router tries `other` after `own`.
 */
export function listReadings(
  own: string,
  other: string,
  spelling: OriginSpelling,
  isBelow: boolean,
): (Reading & { readonly chance: Chance })[] {
  if (spelling === 'exact') return []
  const shapes = expandOptional(own).map(parseShape)
  return expandOptional(other).flatMap((variant) => {
    const shape = parseShape(variant)
    if (isBelow && shapes.some((mine) => agrees(mine, shape))) return []
    return readingsOfShape(shape, spelling === 'loose', shapes)
      .map((reading) => ({ ...reading, chance: compareChance(shapes, reading) }))
      .filter(({ chance }) => chance !== 'never')
  })
}

function readingsOfShape(
  { tokens: raw, isOpen }: Shape,
  extensions: boolean,
  shapes: readonly Shape[],
): Reading[] {
  const tokens = raw.map((token, at) => {
    // The router has already compared this token.
    if (shapes.every((mine) => mine.tokens[at] === token)) return ANY
    return typeof token === 'string' ? parseName(token).folded : token
  })
  const last = raw.at(-1)
  // The policy names the script on purpose, so it also decides about paths below the script.
  const isNamed = shapes.some((mine) => mine.tokens[raw.length - 1] === last)
  const isScript = typeof last !== 'string' || extensions || hasExtension(last)
  const whole = { tokens, isOpen, extensions, pathInfo: isScript && (last === ANY || !isNamed) }
  if (typeof last !== 'string' || !extensions || isOpen || !isDefaultDocument(parseName(last)))
    return [whole]
  // A folder that the policy names is a separate route. A folder that a parameter matches may be
  // read as this document.
  const isFolderNamed = shapes.every(
    (mine) => !mine.isOpen && typeof (mine.tokens.at(-1) ?? '') === 'string',
  )
  return isFolderNamed
    ? [whole]
    : [whole, { ...whole, tokens: tokens.slice(0, -1), pathInfo: false }]
}

/**
 * Returns for how many paths of `shapes` the reading applies. If the policy names `/orders.csv`
 * beside `/orders`, the two are different routes. They count as the same only if nothing but case,
 * a slash or the like differs.
 */
function compareChance(shapes: readonly Shape[], reading: Reading): Chance {
  const chances = shapes.map((shape) => chanceOfShape(shape, reading))
  if (chances.every((chance) => chance === 'always')) return 'always'
  return chances.every((chance) => chance === 'never') ? 'never' : 'sometimes'
}

function chanceOfShape({ tokens: mine, isOpen }: Shape, reading: Reading): Chance {
  const { tokens, extensions } = reading
  let isCertain = true
  for (const [at, token] of tokens.entries()) {
    const own = mine[at]
    if (own === undefined) return isOpen ? 'sometimes' : 'never'
    if (typeof own !== 'string') isCertain &&= token === ANY
    else if (!matchesToken(token, parseName(own), IN_THE_MIDDLE)) return 'never'
  }
  const extra = mine.length - tokens.length
  if (reading.isOpen || (extra === 0 && !isOpen)) return isCertain ? 'always' : 'sometimes'
  if (extra === 0) return 'sometimes'
  const end = mine[tokens.length - 1]
  const isOther =
    typeof end !== 'string' || (typeof tokens.at(-1) === 'string' && hasExtension(end))
  if (reading.pathInfo && tokens.length > 0 && isOther) return 'sometimes'
  return extra === 1 && extensions && typeof mine.at(-1) !== 'string' ? 'sometimes' : 'never'
}

/** Whether every path that both patterns match exactly is routed to `mine`. */
function agrees(mine: Shape, other: Shape): boolean {
  for (const [at, own] of mine.tokens.entries()) {
    if (at === other.tokens.length) return other.isOpen
    const literal = other.tokens[at]
    if (typeof literal !== 'string' || own === ANY) continue
    if (typeof own === 'string' ? own !== literal : !own?.test(literal)) return false
  }
  const isSame = mine.isFolder === other.isFolder && mine.tokens.length === other.tokens.length
  return mine.isOpen || other.isOpen || isSame
}

/**
 * Reports whether an origin could read a path in one of these ways. `path` is a raw path for which
 * `ambiguity` returns undefined. Takes time linear in its length. Does NOT consider frameworks that
 * replace word delimiters (`admin_panel` for `admin-panel`).
 */
export function readsAs(path: string, readings: readonly Reading[]): boolean {
  const segments = splitSegments(path)
  const names: Name[] = []
  const nameAt = (at: number) => {
    names[at] ??= parseName(segments[at] ?? '')
    return names[at]
  }
  return readings.some((reading) => fits(segments.length, nameAt, reading))
}

function fits(length: number, nameAt: (at: number) => Name, reading: Reading): boolean {
  const { tokens, isOpen, extensions, pathInfo } = reading
  const extra = length - tokens.length
  if (extra < 0) return false
  const last = tokens.length - 1
  for (let at = 0; at <= last; at++) {
    const token = tokens[at]
    if (token === ANY || token === undefined) continue
    const tail =
      at === last && extra === 0 && extensions
        ? AT_THE_END
        : at === last && extra > 0 && pathInfo
          ? BEFORE_PATH_INFO
          : IN_THE_MIDDLE
    if (!matchesToken(token, nameAt(at), tail)) return false
  }
  if (isOpen || extra === 0) return true
  const isLiteral = typeof tokens[last] === 'string'
  const name = nameAt(last)
  if (pathInfo && (isLiteral ? hasExtension(name.folded) : isScript(name))) return true
  return extra === 1 && extensions && isDefaultDocument(nameAt(length - 1))
}

function parseShape(pattern: string): Shape {
  const segments = splitSegments(pattern)
  const isOpen = segments.at(-1) === '*'
  const tokens = (isOpen ? segments.slice(0, -1) : segments).map(parseToken)
  return { tokens, isOpen, isFolder: pattern.endsWith('/') }
}

function parseToken(segment: string): Token {
  if (!segment.startsWith(':')) return segment
  const [, expression] = /\{(.+)\}/.exec(segment) ?? []
  return expression === undefined ? ANY : new RegExp(`^(?:${expression})$`, 'i')
}

function splitSegments(path: string): string[] {
  const segments = path.slice(1).split('/')
  if (segments.at(-1) === '') segments.pop()
  return segments
}
