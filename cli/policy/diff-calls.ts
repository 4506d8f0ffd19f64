/** The changes of the calls of a route: of the tools of an MCP server, and of JSON-RPC. */
import type { Authorizer } from '../../src/access/permissions.ts'
import type { Principal } from '../../src/access/principal.ts'
import { accessOf } from '../../src/features/mcp/index.ts'
import type { PolicyRoute } from '../../src/policy/policy.ts'
import { type Call, callsOf, nameOfCall } from './calls.ts'
import { type Change, changeOf, changeOfValue, isSame } from './change.ts'
import { changesInSchema } from './diff-schema.ts'
import { admitsCall } from './matrix.ts'

/** A route with the authorizer of its policy. Undefined: the policy has no such route. */
export interface Side {
  readonly route: PolicyRoute | undefined
  readonly authorize: Authorizer
}

/** Yields the callers that gain or lose calls of a route, and what changes for the others. */
export function* changesInCalls(
  route: string,
  { before, after }: { readonly before: Side; readonly after: Side },
  callers: ReadonlyMap<string, Principal | null>,
  changeOfCallers: (
    of: string,
    admitted: { readonly was: readonly string[]; readonly is: readonly string[] },
    how: string,
  ) => Iterable<Change>,
): Generator<Change> {
  const [one, another] = [before, after].map((side) => side.route && callsOf(side.route))
  // A route without a list admits every call.
  const isOpen = (side: Side, calls: typeof one) => side.route !== undefined && calls === undefined
  if (isOpen(before, one) || isOpen(after, another)) {
    if (one !== undefined) yield changeOf('widening', route, `${route}: all calls are allowed now`)
    if (another !== undefined)
      yield changeOf('narrowing', route, `${route}: only the listed calls are allowed now`)
    return
  }
  const admittedTo = ({ route, authorize }: Side, call: Call | undefined) =>
    route === undefined
      ? []
      : [...callers].flatMap(([name, caller]) =>
          admitsCall(route, call, caller, authorize) ? [name] : [],
        )
  for (const name of new Set([...(one?.names ?? []), ...(another?.names ?? [])])) {
    const [was, is] = [one?.find(name), another?.find(name)]
    const how = was === undefined ? ' (new)' : is === undefined ? ' (removed)' : ''
    const of = nameOfCall(name, route)
    const admitted = { was: admittedTo(before, was), is: admittedTo(after, is) }
    yield* changeOfCallers(of, admitted, how)
    if (was !== undefined && is !== undefined) yield* changesInCall(of, was, is)
  }
}

function* changesInCall(of: string, before: Call, after: Call): Generator<Change> {
  const [was, is] = [before.permission, after.permission]
  if (was !== is) {
    const text = (change: string) => `callers with the scope ${change} ${of}`
    if (is !== undefined) yield changeOf('widening', of, text(`${is} may gain`))
    if (was !== undefined) yield changeOf('narrowing', of, text(`${was} may lose`))
  }
  yield* changesInSchema(`arguments of ${of}`, before.arguments, after.arguments)
  for (const limit of before.limits.filter((name) => !after.limits.includes(name)))
    yield changeOf('widening', of, `${of}: no longer limited by ${limit}`)
  for (const limit of after.limits.filter((name) => !before.limits.includes(name)))
    yield changeOf('narrowing', of, `${of}: limited by ${limit} now`)
  for (const [field, what] of DEMANDS) {
    const [demanded, demands] = [before[field], after[field]]
    if (isSame(demanded, demands)) continue
    if (demanded === undefined) yield changeOf('narrowing', of, `${of}: ${what} is required now`)
    else if (demands === undefined)
      yield changeOf('widening', of, `${of}: ${what} is no longer required`)
    else yield* changeOfValue(of, field, demanded, demands)
  }
}

const DEMANDS = [
  ['relation', 'a relation'],
  ['definition', 'an approved definition'],
] as const

const SETTINGS = ['scopes', 'versions', 'definitions', 'maxMessageBytes'] as const

/** Yields the changes of an MCP server besides its calls. Its three routes share them. */
export function* changesInServer(
  route: string,
  before: PolicyRoute,
  after: PolicyRoute,
): Generator<Change> {
  if (after.method !== 'POST') return
  const [one, another] = [before, after].map(({ mcp }) => mcp && accessOf(mcp))
  for (const field of SETTINGS) yield* changeOfValue(route, field, one?.[field], another?.[field])
}
