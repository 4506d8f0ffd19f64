/** The regular expressions that a route runs on what a caller sends. */
import type { PolicyRoute } from '../../src/policy/policy.ts'
import { patternsIn, type UsedPattern } from '../patterns/in-schemas.ts'
import { callsOf } from './calls.ts'

export interface RoutePattern {
  /** Path in the row of the route. */
  readonly path: readonly string[]
  /** What the pattern checks: `body`. */
  readonly name: string
  readonly used: UsedPattern
}

const EXPRESSION = /\{([^{}/]+)\}/g

/** Yields the patterns of the path, of the input, and of the arguments of calls. */
export function* patternsOf(route: PolicyRoute): Generator<RoutePattern> {
  for (const [, source = ''] of route.path.matchAll(EXPRESSION)) {
    const pattern = new RegExp(`^(?:${source})$`)
    yield { path: ['path'], name: 'its path', used: { pattern, maxLength: undefined } }
  }
  for (const [part, schema] of Object.entries(route.input))
    for (const used of patternsIn(schema)) yield { path: ['input', part], name: part, used }
  const calls = callsOf(route)
  for (const call of calls?.names ?? [])
    for (const used of argumentsOf(calls?.find(call)?.arguments))
      yield { path: [route.mcp === undefined ? 'inspect' : 'mcp'], name: call, used }
}

const argumentsOf = (schema: Parameters<typeof patternsIn>[0] | undefined) =>
  schema === undefined ? [] : patternsIn(schema)
