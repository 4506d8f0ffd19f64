/** Checks imported routes with the rules of the policy. */
import * as z from 'zod/mini'
import type { $ZodType } from 'zod/v4/core'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { findLookAlikes } from '../../src/policy/look-alikes.ts'
import { mistakesOfRoute } from '../../src/policy/mistakes.ts'
import { createPathIndex } from '../../src/policy/path-index.ts'
import { completeRoute, type PolicyRoute } from '../../src/policy/route.ts'
import { policySchema } from '../../src/validators/policy.ts'
import type { ImportedRoute } from './routes.ts'

/** Limits, relations and origins are in the policy, which this command does not read. */
const ELSEWHERE = { names: [], limits: new Map(), relations: null, origins: null }

interface Row {
  readonly route: ImportedRoute
  readonly definition: RouteDefinition
}

/**
 * Returns what the policy refuses. `isExtension` mistakes come from the extensions of the document;
 * `routes` are those that the policy accepts.
 */
export interface Verified {
  readonly routes: readonly ImportedRoute[]
  readonly mistakes: readonly string[]
  /** Routes that the policy refuses, and why. */
  readonly refused: readonly (readonly [ImportedRoute, string])[]
  /** Routes that an origin could confuse unless it compares paths exactly, as OpenAPI does. */
  readonly alike: ReadonlySet<ImportedRoute>
}

export function verifyRoutes(routes: readonly ImportedRoute[]): Verified {
  if (routes.length === 0) return { routes, mistakes: [], refused: [], alike: new Set() }
  const placeholders = new Map<unknown, $ZodType>()
  const rows = routes.map(
    (route): Row => ({ route, definition: definitionOf(route, placeholders) }),
  )
  const { error } = z.safeParse(
    policySchema.shape.routes,
    rows.map(({ definition }) => definition),
  )
  const mistakes = (error?.issues ?? []).map(({ path: [index, ...path], message }) => {
    const place = routes[Number(index)]?.place ?? 'routes'
    return `${place}: ${[...path.map(String), message].join(': ')}`
  })
  if (mistakes.length > 0) return { routes, mistakes, refused: [], alike: new Set() }
  const refusals = new Map<ImportedRoute, string>()
  const rowsAbove = createPathIndex<RouteDefinition>()
  for (const row of rows) {
    const definition = tableRow(row)
    for (const { message } of mistakesOfRoute(definition, rowsAbove, ELSEWHERE))
      refusals.set(row.route, message)
    rowsAbove.add(definition)
  }
  const kept = rows.filter(({ route }) => !refusals.has(route))
  return {
    routes: kept.map(({ route }) => route),
    mistakes,
    refused: [...refusals],
    alike: alikeAmong(kept),
  }
}

/** Equal code has the same placeholder, because the policy compares schemas by identity. */
function definitionOf(
  { method, path, data, input }: ImportedRoute,
  placeholders: Map<unknown, $ZodType>,
): RouteDefinition {
  const schemas = [...input].map(([part, code]) => {
    const key = JSON.stringify(code)
    const schema = placeholders.get(key) ?? z.unknown()
    placeholders.set(key, schema)
    return [part, schema]
  })
  const parts = schemas.length > 0 && { input: Object.fromEntries(schemas) }
  return { method, path, ...Object.fromEntries(data), ...parts } as RouteDefinition
}

function tableRow({ definition: { relation: _, limits: __, ...row } }: Row): RouteDefinition {
  return row
}

function alikeAmong(rows: readonly Row[]): ReadonlySet<ImportedRoute> {
  const routes = rows.map(({ definition }) => policyRouteOf(definition))
  const importedOf = new Map(routes.map((route, index) => [route, rows[index]?.route]))
  const alike = new Set<ImportedRoute>()
  for (const route of routes) {
    for (const { route: other, isCertain } of findLookAlikes(route, routes)) {
      if (!isCertain) continue
      for (const one of [route, other]) {
        const imported = importedOf.get(one)
        if (imported !== undefined) alike.add(imported)
      }
    }
  }
  return alike
}

function policyRouteOf(definition: RouteDefinition): PolicyRoute {
  const { permission, relation, limits = [], anonymous: _, session: _session, ...row } = definition
  return completeRoute({
    ...row,
    permission: typeof permission === 'string' ? permission : permission?.name,
    permissionMode: typeof permission === 'string' ? undefined : permission?.mode,
    relation: relation as PolicyRoute['relation'],
    limits: limits.map((name) => ({ name }) as PolicyRoute['limits'][number]),
  })
}
