/** Path patterns of the route table: literals, `:params`, and `*` for all paths below. */

/** `:name`, `:name?` or `:name{expression}`, as in Hono. */
const PARAMETER = /^:\w+(?:\{[^{}/]+\})?\??$/
/** Literal segments that `canonicalPath` does not refuse as ambiguous. */
const LITERAL = /^(?!\.{1,2}$)[\w.~!$&'()+,=@-]+$/

/**
 * Reports whether the router supports a pattern, and a request can match it. Parameter names must
 * be unique: the gateway would check one of the two values, but the origin receives both.
 */
export function isPathPattern(pattern: string): boolean {
  const [first, ...segments] = pattern.split('/')
  const last = segments.length - 1
  const names = parametersOf(pattern)
  return (
    first === '' &&
    last >= 0 &&
    new Set(names).size === names.length &&
    segments.every(
      (segment, index) =>
        ((segment === '*' || segment === '') && index === last) ||
        LITERAL.test(segment) ||
        (PARAMETER.test(segment) && isExpression(segment)),
    )
  )
}

export function parametersOf(pattern: string): readonly string[] {
  return pattern.split('/').flatMap((segment) => /^:(\w+)/.exec(segment)?.[1] ?? [])
}

function isExpression(parameter: string): boolean {
  const [, expression] = /\{(.+)\}/.exec(parameter) ?? []
  try {
    return expression === undefined || new RegExp(expression) instanceof RegExp
  } catch {
    return false
  }
}

/** `/orders` and `/orders/:id` for `/orders/:id?`. The router expands only a last segment. */
export function expandOptional(pattern: string): readonly string[] {
  if (!pattern.endsWith('?')) return [pattern]
  const variants: string[] = []
  let path = ''
  for (const segment of pattern.split('/').slice(1)) {
    const isOptional = segment.startsWith(':') && segment.endsWith('?')
    if (isOptional) variants.push(path === '' ? '/' : path)
    path += `/${isOptional ? segment.slice(0, -1) : segment}`
    if (isOptional) variants.push(path)
  }
  return [...new Set(variants)]
}

/**
 * Reports whether `later` never gets a request, because `earlier` matches all its paths. False for
 * parameters with an expression, which cannot be compared.
 */
export function shadows(earlier: string, later: string): boolean {
  const before = expandOptional(earlier)
  return expandOptional(later).every((after) => before.some((one) => matchesAll(one, after)))
}

function matchesAll(earlier: string, later: string): boolean {
  const [before, after] = [earlier.split('/'), later.split('/')]
  for (const [index, segment] of before.entries()) {
    // The pattern `/files/*` also matches `/files`.
    if (segment === '*') return index <= after.length
    const other = after[index]
    if (other === undefined || other === '*') return false
    if (segment !== other && (other === '' || !/^:\w+$/.test(segment))) return false
  }
  return before.length === after.length
}
