/** Imports a document: from its source to the text of the module. */
import { Failure, REFUSED } from '../failure.ts'
import { counted } from '../text.ts'
import type { NodeCounts } from './coverage.ts'
import { type LoadOptions, loadDocument } from './document.ts'
import { moduleText } from './module.ts'
import { createNotes, type Note } from './notes.ts'
import { type ImportedRoute, type RouteOptions, routesOf } from './routes.ts'
import { createDefinitions } from './schema/definitions.ts'
import { verifyRoutes } from './verify.ts'

export interface ImportOptions extends LoadOptions, RouteOptions {}

export interface Imported {
  readonly text: string
  /** Number of operations in the document. */
  readonly operations: number
  readonly routes: readonly ImportedRoute[]
  readonly schemas: number
  readonly notes: readonly Note[]
  /** Nodes of the document and of the files that it references. */
  readonly nodes: NodeCounts
}

/** Throws a `Failure` for a document that cannot be read, and for extensions that are not valid. */
export async function importDocument(source: string, options: ImportOptions): Promise<Imported> {
  const { progress } = options
  progress?.begin(`reading ${source}`)
  const document = await loadDocument(source, options)
  const notes = createNotes()
  const definitions = createDefinitions(document, notes)
  const { routes: found, operations, mistakes } = routesOf(document, definitions, options)
  progress?.begin(`checking ${counted(found.length, 'route')}`)
  const verified = verifyRoutes(found)
  const all = [...mistakes, ...verified.mistakes]
  if (all.length > 0)
    throw new Failure(REFUSED, 'invalid_extensions', `${source}: the policy refuses extensions`, {
      findings: all.map((message) => ({ in: '', path: '', message })),
    })
  for (const [{ place }, reason] of verified.refused)
    notes.unmapped(place, `the policy refuses the route: ${reason}`)
  const routes = verified.routes.map((route) => {
    if (!verified.alike.has(route) || route.data.has('originSpelling')) return route
    notes.assumed(
      route.place,
      'the origin compares paths exactly, because the document has a similar path',
    )
    return { ...route, fields: new Map([...route.fields, ['originSpelling', "'exact'"]]) }
  })
  for (const [file, reason] of document.unreadable)
    notes.unmapped(file, `the file cannot be read: ${reason}`)
  const nodes = document.coverage.report(document.files, notes)
  const parts = { source, routes, definitions, notes: notes.all() }
  progress?.begin('writing the module')
  const text = moduleText(parts)
  return {
    text,
    operations,
    routes,
    schemas: definitions.all().length,
    notes: notes.all(),
    nodes,
  }
}
