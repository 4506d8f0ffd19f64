/** Patterns of the route table: literals, `:params`, and `*` for the rest. */

/** `:name`, `:name?` or `:name{expression}`, as Hono writes them. */
const PARAMETER = /^:\w+(?:\{[^{}/]+\})?\??$/
/** What a path may hold without being refused as ambiguous, see `canonicalPath`. */
const LITERAL = /^(?!\.{1,2}$)[\w.~!$&'()+,=@-]+$/

/**
 * Whether every part of a pattern means something to the router and can occur in a request. A parameter
 * stands in it once: of two of a name one would be decided on, and the origin sees both.
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

/** Names of a pattern's parameters: `id` of `/orders/:id`. */
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

/**
 * Whether `earlier` takes every path that `later` would, so that `later` never gets one. Errs to
 * false for parameters with an expression, whose texts cannot be compared.
 */
export function shadows(earlier: string, later: string): boolean {
  const [before, after] = [earlier.split('/'), later.split('/')]
  for (const [index, segment] of before.entries()) {
    if (segment === '*') return index < after.length
    const other = after[index]
    if (other === undefined || other === '*') return false
    if (segment !== other && !/^:\w+$/.test(segment)) return false
    if (segment.startsWith(':') && other.endsWith('?')) return false
  }
  return before.length === after.length
}
