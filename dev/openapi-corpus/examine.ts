/** Imports one document, loads its module, creates a policy, and compares it with ajv. */
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Failure } from '../../cli/failure.ts'
import { type Imported, importDocument } from '../../cli/openapi/import.ts'
import { isObject, type JsonObject } from '../../cli/openapi/located.ts'
import type { NoteKind } from '../../cli/openapi/notes.ts'
import { Misconfigured } from '../../src/errors.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import type { LimitText } from '../../src/validators/limit.ts'
import { ROOT } from '../start/settings.ts'
import { type Comparison, compare } from './compare.ts'

export interface Outcome {
  readonly document: string
  readonly seconds: number
  readonly operations?: number
  readonly routes?: number
  /** HEAD operations beside a GET. */
  readonly answeredByGet?: number
  readonly notes?: Readonly<Record<NoteKind, number>>
  /** Number of operations without a route, by reason. */
  readonly reasons?: Readonly<Record<string, number>>
  readonly isPolicy?: boolean
  readonly crash?: string
  readonly refusal?: string
  readonly comparison?: Comparison
}

export interface ExamineOptions {
  /** For modules. */
  readonly folder: string
  /** Requests to compare for each sampled operation. */
  readonly requests: number
}

const OPTIONS = { remoteRefs: false, prefix: undefined, limits: [], jsonOnly: true }

export async function examine(
  document: string,
  { folder, requests }: ExamineOptions,
): Promise<Outcome> {
  const startMs = performance.now()
  const seconds = () => (performance.now() - startMs) / 1_000
  try {
    const imported = await importDocument(document, OPTIONS)
    const took = seconds()
    const content = JSON.parse(readFileSync(document, 'utf8')) as JsonObject
    const routes = await loaded(imported, folder)
    const { operations } = imported
    const listed = operations - imported.routes.length - answeredByGet(content)
    const reasons = reasonsOf(imported)
    const explained = Object.values(reasons).reduce((total, one) => total + one, 0)
    if (explained !== listed)
      throw new Error(`${listed} operations without a route, but ${explained} are listed`)
    const count = (kind: NoteKind) => imported.notes.filter((note) => note.kind === kind).length
    return {
      document,
      seconds: took,
      operations,
      routes: imported.routes.length,
      answeredByGet: answeredByGet(content),
      reasons,
      notes: {
        unmapped: count('unmapped'),
        approximated: count('approximated'),
        assumed: count('assumed'),
        ignored: count('ignored'),
      },
      isPolicy: routes.length > 0 && isPolicy(routes),
      ...(requests > 0 && { comparison: compare(document, content, imported, routes, requests) }),
    }
  } catch (error) {
    if (error instanceof Failure) return { document, seconds: seconds(), refusal: error.message }
    const detail = error instanceof Misconfigured ? error.message : (error as Error).stack
    return { document, seconds: seconds(), crash: String(detail).slice(0, 400) }
  }
}

/** Messages about operations without a route, and how the results name them. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^the gateway has no routes for the method/, 'HEAD without GET, OPTIONS, or TRACE'],
  [/remove the fragment$/, 'the path contains a fragment'],
  [/does not select a route/, 'the path differs from another one only in its query'],
  [/^the path cannot be mapped: its query/, 'the query of the path is not fixed'],
  [/^the path cannot be mapped: the segment/, 'a segment has several parameters'],
  [/^the path of the server cannot be mapped/, 'the router cannot match the path'],
  [/^the path cannot be mapped/, 'the router cannot match the path'],
  [/^matches the same requests as/, 'another operation has the same requests'],
  [
    /^the policy refuses the route/,
    'the gateway has the path, or another route matches all requests',
  ],
]

/** Returns the number of HEAD operations that the route of a GET answers. */
function answeredByGet({ paths }: JsonObject): number {
  const items = Object.entries(isObject(paths) ? paths : {})
  return items.filter(
    ([template, item]) =>
      template.startsWith('/') && isObject(item) && isObject(item.head) && item.get !== undefined,
  ).length
}

function reasonsOf({ notes }: Imported): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { kind, message } of notes) {
    const [, reason] = REASONS.find(([pattern]) => pattern.test(message)) ?? []
    if (kind === 'unmapped' && reason !== undefined) counts[reason] = (counts[reason] ?? 0) + 1
  }
  return counts
}

/** Loads a module as a policy would, with the source of this checkout. */
async function loaded({ text }: Imported, folder: string): Promise<readonly RouteDefinition[]> {
  const file = join(folder, `${randomUUID()}.ts`)
  const source = (path: string) => `'${pathToFileURL(join(ROOT, path)).href}'`
  const code = text
    .replace("'portcullis/openapi-routes'", source('src/features/openapi-routes/index.ts'))
    .replace("'zod/mini'", source('node_modules/zod/v4/mini/index.js'))
  writeFileSync(file, code)
  const module = (await import(pathToFileURL(file).href)) as {
    readonly routes: readonly RouteDefinition[]
  }
  return module.routes
}

function isPolicy(routes: readonly RouteDefinition[]): boolean {
  const limits: Record<string, LimitText> = {}
  return definePolicy({ roles: {}, limits, routes }).routes.length === routes.length
}
