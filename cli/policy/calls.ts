/** The calls that a route distinguishes: tools, prompts and resources of an MCP server, and methods of JSON-RPC. */

import * as z from 'zod/mini'
import type { $ZodType } from 'zod/v4/core'
import type { McpToolAccess } from '../../src/features/mcp/definition.ts'
import { accessOf } from '../../src/features/mcp/index.ts'
import { STANDARD_METHODS } from '../../src/features/mcp/schema.ts'
import type { JsonRpcMethod } from '../../src/inspection/definition.ts'
import type { PolicyRoute } from '../../src/policy/policy.ts'

/** What a caller needs for a call, besides the permission, the relation and the limits of its route. */
export interface Call extends Pick<McpToolAccess, 'permission' | 'relation' | 'definition'> {
  readonly limits: readonly string[]
  /** Undefined: the arguments are not checked. */
  readonly arguments: $ZodType | undefined
}

/** The calls of a route. */
export interface Calls {
  /** Such as `tool search_books`. Without the methods of MCP, which every server has. */
  readonly names: readonly string[]
  /** Returns undefined for a call that is refused to every caller. A name may be covered by `tool *`. */
  find(name: string): Call | undefined
}

type Entry = true | (Partial<Omit<Call, 'arguments'>> & { readonly arguments?: $ZodType | 'any' })
type Table = Readonly<Record<string, Entry>>

const NO_ARGUMENTS = z.strictObject({})
const ADMITTED: Call = { limits: [], arguments: undefined }
const OTHERS = '*'

/** Returns undefined if the route does not distinguish calls. An MCP server has calls by POST only. */
export function callsOf({ method, mcp, inspect }: PolicyRoute): Calls | undefined {
  if (mcp !== undefined) {
    if (method !== 'POST') return undefined
    const { tools, prompts, resources, methods } = accessOf(mcp) ?? {}
    const calls = new Map([
      ...entriesOf('tool', tools, NO_ARGUMENTS),
      ...entriesOf('prompt', prompts),
      ...entriesOf('resource', resources),
      ...entriesOf('method', tableOf(methods)),
    ])
    const standard = STANDARD_METHODS.map((name) => [`method ${name}`, ADMITTED] as const)
    return { names: [...calls.keys()], find: finderIn(new Map([...standard, ...calls])) }
  }
  const { jsonRpc } = inspect ?? {}
  if (jsonRpc === undefined) return undefined
  const calls = new Map([
    ...entriesOf('method', tableOf(jsonRpc.methods)),
    ...entriesOf('tool', jsonRpc.tools, NO_ARGUMENTS),
  ])
  return { names: [...calls.keys()], find: (name) => calls.get(name) }
}

/** Returns calls by kind and name. `byDefault` is the schema of an entry without `arguments`. */
function entriesOf(kind: string, table: Table = {}, byDefault?: $ZodType) {
  return Object.entries(table).map(([name, entry]): [string, Call] => {
    const { arguments: schema = byDefault, limits = [], ...others } = entry === true ? {} : entry
    return [
      `${kind} ${name}`,
      { ...others, limits, arguments: schema === 'any' ? undefined : schema },
    ]
  })
}

const tableOf = (methods: Readonly<Record<string, true | JsonRpcMethod>> = {}): Table =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]) => {
      if (method === true) return [name, method]
      const { params, ...others } = method
      return [name, { ...others, ...(params && { arguments: params }) }]
    }),
  )

/** Finds a call of an MCP server: by its name, else by `*`, else a resource by its longest beginning. */
function finderIn(calls: ReadonlyMap<string, Call>): Calls['find'] {
  const beginnings = [...calls.keys()]
    .filter((name) => name.startsWith('resource ') && name.endsWith(OTHERS))
    .sort((one, other) => other.length - one.length)
  return (name) => {
    const [kind] = name.split(' ')
    const beginning = beginnings.find((one) => name.startsWith(one.slice(0, -OTHERS.length)))
    return calls.get(name) ?? calls.get(beginning ?? `${kind} ${OTHERS}`)
  }
}

/** Returns the name of a call with its route: `tool search_books of POST /mcp`. */
export const nameOfCall = (name: string, route: string): string => `${name} of ${route}`
