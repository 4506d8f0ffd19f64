/** Imports one document, loads its module, creates a policy, and compares it with ajv. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Failure } from '../../cli/failure.ts'
import { type Imported, importDocument } from '../../cli/openapi/import.ts'
import { Misconfigured } from '../../src/errors.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import type { LimitText } from '../../src/validators/limit.ts'
import { ROOT } from '../start/settings.ts'
import { compare } from './compare.ts'

export interface Outcome {
  readonly document: string
  readonly seconds: number
  readonly operations?: number
  readonly routes?: number
  /** Operations without a route. */
  readonly listed?: number
  readonly notes?: Readonly<Record<'unmapped' | 'approximated' | 'assumed', number>>
  readonly isPolicy?: boolean
  readonly crash?: string
  readonly refusal?: string
  readonly compared?: number
  readonly requests?: number
  readonly valid?: number
  readonly noted?: number
  readonly disagreements?: readonly string[]
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
    const routes = await loaded(imported, folder)
    const count = (kind: string) => imported.notes.filter((note) => note.kind === kind).length
    return {
      document,
      seconds: took,
      operations: imported.operations,
      routes: imported.routes.length,
      listed: imported.operations - imported.routes.length,
      notes: {
        unmapped: count('unmapped'),
        approximated: count('approximated'),
        assumed: count('assumed'),
      },
      isPolicy: routes.length > 0 && isPolicy(routes),
      ...(requests > 0 && compare(document, imported, routes, requests)),
    }
  } catch (error) {
    if (error instanceof Failure) return { document, seconds: seconds(), refusal: error.message }
    const detail = error instanceof Misconfigured ? error.message : (error as Error).stack
    return { document, seconds: seconds(), crash: String(detail).slice(0, 400) }
  }
}

/** Loads a module as a policy would, with the source of this checkout. */
async function loaded({ text }: Imported, folder: string): Promise<readonly RouteDefinition[]> {
  const file = join(folder, `${randomUUID()}.ts`)
  const source = (path: string) => `'${pathToFileURL(join(ROOT, path)).href}'`
  const code = text
    .replace("'portcullis/openapi-routes'", source('src/features/openapi-routes.ts'))
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
