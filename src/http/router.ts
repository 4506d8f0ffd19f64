/** A router for Hono whose time for a request hardly depends on the number of routes. */
import type { Hono } from 'hono'
import { HonoBase } from 'hono/hono-base'
import { METHOD_NAME_ALL, type Params, type Router } from 'hono/router'
import type { BlankEnv, Env } from 'hono/types'
import { expandOptional } from './path-pattern.ts'

/** `:name`, or `:name{expression}`. */
const PARAMETER = /^:([^{}]+)(?:\{(.+)\})?$/
const NO_PARAMETERS: Params = Object.freeze(Object.create(null))

interface Target<T> {
  /** Position in the order of `add`. */
  readonly at: number
  readonly method: string
  readonly handler: T
  /** Names of the parameters, and the positions of their segments. */
  readonly parameters: readonly (readonly [name: string, position: number])[]
  /** Matches the whole path. Only of a pattern with expressions. */
  readonly expression: RegExp | undefined
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>
  parameter: Node<T> | undefined
  /** Of patterns that end here. */
  readonly targets: Target<T>[]
  /** Of patterns that continue with `*`, or with an expression, which can match slashes. */
  readonly open: Target<T>[]
}

const newNode = <T>(): Node<T> => ({
  literals: new Map(),
  parameter: undefined,
  targets: [],
  open: [],
})

/** Creates an app with this router. The class `Hono` would add Hono's own routers to the bundle. */
export const createApp = <E extends Env = BlankEnv>(): Hono<E> =>
  new HonoBase<E>({ router: createRouter() })

/**
 * Creates a router for the patterns that `isPathPattern` accepts. A request gets the handlers of all
 * routes that match it, in the order of `add`, as from Hono's routers. Patterns are a tree of their
 * segments up to the first expression. Each pattern with an expression there takes time on its own,
 * and must match the whole path.
 */
export function createRouter<T>(): Router<T> {
  const root = newNode<T>()
  let size = 0

  function insert(pattern: string, of: Omit<Target<T>, 'parameters' | 'expression'>): void {
    const segments = segmentsOf(pattern)
    const matchers = segments.map((segment) => PARAMETER.exec(segment))
    const parameters = matchers.flatMap((matcher, position) =>
      matcher?.[1] === undefined ? [] : [[matcher[1], position] as const],
    )
    const hasExpression = matchers.some((matcher) => matcher?.[2] !== undefined)
    const expression = hasExpression ? compileExpression(segments, matchers) : undefined
    const target = { ...of, parameters, expression }
    let node = root
    for (const [position, segment] of segments.entries()) {
      const matcher = matchers[position]
      const isWildcard = segment === '*' && position === segments.length - 1
      if (isWildcard || matcher?.[2] !== undefined) {
        node.open.push(target)
        return
      }
      node = matcher ? parameterOf(node) : insertLiteral(node, segment)
    }
    node.targets.push(target)
  }

  return {
    name: 'tree',
    add(method, path, handler) {
      const at = size++
      for (const variant of expandOptional(path)) insert(variant, { at, method, handler })
    },
    match(method, path) {
      const segments = segmentsOf(path)
      const found: Target<T>[] = []

      function collect(target: Target<T>): void {
        if (target.method !== method && target.method !== METHOD_NAME_ALL) return
        if (target.expression?.test(path) !== false) insertInto(found, target)
      }
      function visit(node: Node<T>, position: number): void {
        node.open.forEach(collect)
        const segment = segments[position]
        if (segment === undefined) {
          node.targets.forEach(collect)
          return
        }
        const literal = node.literals.get(segment)
        if (literal !== undefined) visit(literal, position + 1)
        if (node.parameter !== undefined && segment !== '') visit(node.parameter, position + 1)
      }

      visit(root, 0)
      return [found.map((target) => [target.handler, readParams(target, path, segments)])]
    },
  }
}

/** Inserts a target into a short list in the order of `at`. */
function insertInto<T>(list: Target<T>[], target: Target<T>): void {
  let place = list.length
  for (let above = list[place - 1]; above !== undefined && above.at > target.at; ) {
    list[place] = above
    place -= 1
    above = list[place - 1]
  }
  list[place] = target
}

/** The pattern `*` is `/*`. */
const segmentsOf = (path: string): string[] => (path === '*' ? [path] : path.slice(1).split('/'))

function compileExpression(
  segments: readonly string[],
  matchers: readonly (RegExpExecArray | null)[],
): RegExp {
  const parts = segments.map((segment, position) => {
    if (segment === '*' && position === segments.length - 1) return '(?:/[^]*)?'
    const matcher = matchers[position]
    if (matcher) return `/(?<p${position}>${matcher[2] ?? '[^/]+'})`
    return `/${segment.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}`
  })
  return new RegExp(`^${parts.join('')}$`)
}

function insertLiteral<T>(node: Node<T>, segment: string): Node<T> {
  const child = node.literals.get(segment) ?? newNode<T>()
  node.literals.set(segment, child)
  return child
}

function parameterOf<T>(node: Node<T>): Node<T> {
  node.parameter ??= newNode<T>()
  return node.parameter
}

function readParams<T>(
  { parameters, expression }: Target<T>,
  path: string,
  segments: readonly string[],
): Params {
  if (parameters.length === 0) return NO_PARAMETERS
  const groups = expression?.exec(path)?.groups
  const params: Params = Object.create(null)
  for (const [name, position] of parameters)
    params[name] ??= (groups === undefined ? segments[position] : groups[`p${position}`]) ?? ''
  return params
}
