/** Imports a document and loads the module, as a policy does. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Imported, type ImportOptions, importDocument } from '../../../cli/openapi/import.ts'
import type { Note } from '../../../cli/openapi/notes.ts'
import type { RouteDefinition } from '../../../src/policy/definition.ts'
import { ROOT } from '../../harness/process.ts'

export const DOCUMENTS = join(ROOT, 'test/cli/openapi/documents')

const DEFAULTS: ImportOptions = {
  prefix: undefined,
  limits: [],
  jsonOnly: false,
  remoteRefs: false,
}

export interface LoadedModule extends Imported {
  /** Without those of the kind `ignored`. */
  readonly notes: readonly Note[]
  /** Names of members without effect on requests. */
  readonly ignored: readonly string[]
  readonly routes: Imported['routes']
  readonly module: {
    readonly routes: readonly RouteDefinition[]
    readonly [name: string]: unknown
  }
}

/** The tests run the sources of this checkout, and so do the modules. */
export async function loadModule(text: string): Promise<LoadedModule['module']> {
  const cache = join(ROOT, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'openapi-module-'))
  const file = join(folder, 'routes.generated.ts')
  try {
    const source = `'${join(ROOT, 'src', 'features', 'openapi-routes', 'index.ts')}'`
    writeFileSync(file, text.replace("'portcullis/openapi-routes'", source))
    return (await import(/* @vite-ignore */ file)) as LoadedModule['module']
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export async function importFile(
  file: string,
  options: Partial<ImportOptions> = {},
): Promise<LoadedModule> {
  const imported = await importDocument(file, { ...DEFAULTS, ...options })
  const notes = imported.notes.filter(({ kind }) => kind !== 'ignored')
  const ignored = imported.notes.filter((note) => !notes.includes(note))
  return {
    ...imported,
    notes,
    ignored: [...new Set(ignored.map(({ place }) => place))],
    module: await loadModule(imported.text),
  }
}

/** Imports a document that is a value. */
export async function importValue(
  document: object,
  options: Partial<ImportOptions> = {},
): Promise<LoadedModule> {
  const folder = mkdtempSync(join(tmpdir(), 'openapi-'))
  const file = join(folder, 'openapi.json')
  try {
    writeFileSync(file, JSON.stringify(document))
    return await importFile(file, options)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Returns a document of one operation. */
export function documentOf(
  path: string,
  operation: object,
  {
    schemas = {},
    openapi = '3.1.0',
    method = 'post',
    ...more
  }: {
    readonly schemas?: object
    readonly openapi?: string
    readonly method?: string
    readonly [member: string]: unknown
  } = {},
): object {
  return {
    openapi,
    info: { title: 'test', version: '1' },
    security: [{ oauth: [] }],
    paths: { [path]: { [method]: { responses: {}, ...operation } } },
    components: { schemas },
    ...more,
  }
}

/** Returns a request body of one schema. */
export const jsonBody = (schema: unknown, required = true) => ({
  requestBody: { required, content: { 'application/json': { schema } } },
})

export const messagesOf = (notes: readonly Note[], kind: Note['kind']): readonly string[] =>
  notes.filter((note) => note.kind === kind).map(({ place, message }) => `${place}: ${message}`)
