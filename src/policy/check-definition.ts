/** Checks a definition, and returns the parts of the policy that depend on each other. */
import { Misconfigured } from '../errors.ts'
import { type Mistake, mistakeAt } from '../problems/mistake.ts'
import { issuesOf, mistakeOf } from '../validators/configuration.ts'
import { policySchema } from '../validators/policy.ts'
import { mistakesInBounds } from '../validators/protection.ts'
import { mistakesInHeaders } from '../validators/request-header.ts'
import { authenticationOf } from './authentication.ts'
import { DEFAULT_REVOCATION } from './defaults.ts'
import type {
  NamedLimit,
  PermissionDemand,
  PolicyDefinition,
  RouteDefinition,
} from './definition.ts'
import { limitsNamed, nameLimits } from './limits.ts'
import { mistakesInSpelling } from './look-alikes.ts'
import { mistakesInFeatures, mistakesInLeases, mistakesInRow } from './mistakes.ts'
import type { PolicyOrigins } from './origins.ts'
import { createPathIndex } from './path-index.ts'
import type { PolicyRelations } from './relations.ts'
import { completeRoute, type PolicyRoute } from './route.ts'

type Definition = PolicyDefinition<string, string>

/**
 * Returns the checked parts. Throws one {@link Misconfigured} with all mistakes. A part with a mistake
 * in its shape is left out of the checks between parts.
 */
export function checkedParts(definition: Definition) {
  const mistakes: Mistake[] = []
  /** The fields of the policy, and the members of a field, that have mistakes. */
  const unsound = new Set<string>()
  function add(found: Iterable<Mistake>): void {
    for (const mistake of found) {
      mistakes.push(mistake)
      const [field, part] = mistake.path
      if (field === 'routes') unsound.add(`routes.${part}`)
    }
  }
  function refuseMistakes(): void {
    if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  }
  for (const issue of issuesOf(policySchema, definition)) {
    const [field, part] = issue.path
    add([mistakeOf(issue)])
    unsound.add(String(field)).add(`${String(field)}.${String(part)}`)
  }
  const areSound = (...names: string[]) => !names.some((name) => unsound.has(name))
  if (!hasTables(definition)) refuseMistakes()

  const limits = limitsIn(definition.limits, areSound, add)
  const soundRows = () =>
    [...definition.routes.entries()].filter(([index]) => areSound(`routes.${index}`))
  const revocation = { ...DEFAULT_REVOCATION, ...definition.revocation }
  const relations = areSound('relations') ? compiled(definition.relations, add) : null
  const origins = areSound('origins') ? compiled(definition.origins, add) : null
  const references = { names: Object.keys(definition.limits), limits, relations, origins }
  const table = soundRows()
  /** Rows with mistakes in their shape are not in the table. */
  function ofTable(mistake: Mistake): Mistake {
    const [field, row, ...rest] = mistake.path
    const index = typeof row === 'number' ? table[row]?.[0] : undefined
    if (field !== 'routes' || index === undefined) return mistake
    return { ...mistake, path: [field, index, ...rest] }
  }
  const rowsAbove = createPathIndex<RouteDefinition>()
  for (const [index, route] of table) {
    add(mistakesInRow(index, route, rowsAbove, references))
    rowsAbove.add(route)
  }
  if (areSound('revocation')) add(mistakesInLeases(limits, revocation))
  if (areSound('tokens', 'features'))
    for (const mistake of mistakesInFeatures({
      ...definition,
      routes: table.map(([, route]) => route),
    }))
      add([ofTable(mistake)])
  if (definition.tenantIssuers !== undefined && relations?.issuers !== undefined)
    add([
      mistakeAt(
        'conflict',
        ['tenantIssuers'],
        'cannot be combined with relations.issuers; remove one of them',
      ),
    ])
  if (areSound('maxTokenBytes', 'maxHeaderBytes')) add(mistakesInBounds(definition))
  if (areSound('stripHeaders', 'keepHeaders')) add(mistakesInHeaders(definition))
  const indices = new Map(
    soundRows().map(([index, route]) => [complete(route, limits, relations, origins), index]),
  )
  const routes = [...indices.keys()]
  for (const [route, mistake] of mistakesInSpelling(routes))
    add([{ ...mistake, path: ['routes', indices.get(route) ?? 0, ...mistake.path] }])
  refuseMistakes()
  return {
    limits,
    revocation,
    relations: relations ?? undefined,
    origins: origins ?? undefined,
    routes,
  }
}

/** Reports whether there are parts that can be compared with each other. */
function hasTables(definition: Partial<Definition> | null | undefined): boolean {
  return Array.isArray(definition?.routes) && typeof (definition.limits ?? 0) === 'object'
}

/** Returns the sound limits. Adds the mistakes of groups. */
function limitsIn(
  definitions: Definition['limits'],
  areSound: (name: string) => boolean,
  add: (mistakes: readonly Mistake[]) => void,
): ReadonlyMap<string, NamedLimit> {
  const all = new Map<string, NamedLimit>()
  for (const name of Object.keys(definitions)) {
    const isThis = (other: string) => other === name && areSound(`limits.${name}`)
    const own = compiled({ compile: () => nameLimits(definitions, isThis) }, add)
    for (const [key, limit] of own ?? []) all.set(key, limit)
  }
  return all
}

/** Compiles a feature. Returns null and adds its mistakes if there are any. */
function compiled<Compiled>(
  feature: { compile(): Compiled } | undefined,
  add: (mistakes: readonly Mistake[]) => void,
): Compiled | null | undefined {
  try {
    return feature?.compile()
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    add(error.found)
    return null
  }
}

function complete(
  route: RouteDefinition,
  limits: ReadonlyMap<string, NamedLimit>,
  relations: PolicyRelations | null | undefined,
  origins: PolicyOrigins | null | undefined,
): PolicyRoute {
  const { permission, relation, limits: names = [], anonymous: _, session, ...row } = route
  const demand: PermissionDemand | undefined =
    typeof permission === 'string' ? { name: permission } : permission
  return completeRoute({
    ...origins?.defaultsOf(route),
    ...row,
    permission: demand?.name,
    permissionMode: demand?.mode,
    relation: relations && relation ? relations.ruleOf(relation) : undefined,
    authentication: authenticationOf(route),
    ...(session !== undefined && { session: session === 'optional' ? session : 'browser' }),
    limits: names.flatMap((name) => limitsNamed(limits, name)),
  })
}
