/**
 * `node dev/guarded-app/run.ts [rounds]`: what a guarded Hono app installs, bundles and loads, beside one with verification and
 * limits by hand. Packs the package, and installs it with npm in a folder of its own. Prints a table.
 */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type BuildOptions, build } from 'esbuild'
import { packPackage } from '../package/pack.ts'
import { ROOT } from '../root.ts'

const DEFAULT_ROUNDS = 10
const BYTES_PER_KIB = 1_024
const BYTES_PER_MB = 1_000_000

interface Side {
  readonly name: string
  readonly entry: string
  readonly packages: readonly string[]
}

const BY_HAND = ['hono', 'jose', '@upstash/redis', '@upstash/ratelimit', 'zod']

interface Costs {
  readonly side: Side
  readonly path: string
  readonly packages: number
  readonly installedBytes: number
  readonly rawBytes: number
  readonly gzipBytes: number
}

const folder = mkdtempSync(join(tmpdir(), 'portcullis-app-'))
try {
  await compare(Number(process.argv[2] ?? DEFAULT_ROUNDS))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function compare(rounds: number): Promise<void> {
  execFileSync('npm', ['run', '-s', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  const tarball = join(folder, packPackage(folder).filename)
  const ours = { entry: 'examples/hono/app.ts', packages: [tarball, 'hono', 'zod'] }
  const sides: readonly Side[] = [
    { name: 'portcullis/hono', ...ours },
    { name: 'by hand', entry: 'dev/guarded-app/by-hand.ts', packages: BY_HAND },
  ]
  const costs: Costs[] = []
  for (const [index, side] of sides.entries()) costs.push(await install(side, `side-${index}`))
  const times = costs.map((): { packages: number[]; bundle: number[] } => ({
    packages: [],
    bundle: [],
  }))
  // The first load fills the cache of the file system.
  for (let round = -1; round < rounds; round++) {
    for (const [index, { path }] of costs.entries()) {
      const [packages, bundle] = [
        timeImport(join(path, 'app.mjs')),
        timeImport(join(path, 'bundle.mjs')),
      ]
      if (round < 0) continue
      times[index]?.packages.push(packages)
      times[index]?.bundle.push(bundle)
    }
  }
  console.log(
    '| app | installed | packages | minified | after gzip | import, packages | import, bundle |',
  )
  console.log('|---|---|---|---|---|---|---|')
  for (const [index, { side, ...each }] of costs.entries()) {
    const { packages = [], bundle = [] } = times[index] ?? {}
    const cells = [
      side.name,
      `${(each.installedBytes / BYTES_PER_MB).toFixed(1)} MB`,
      each.packages,
      `${(each.rawBytes / BYTES_PER_KIB).toFixed(1)} KiB`,
      `${(each.gzipBytes / BYTES_PER_KIB).toFixed(1)} KiB`,
      `${median(packages).toFixed(0)} ms`,
      `${median(bundle).toFixed(0)} ms`,
    ]
    console.log(`| ${cells.join(' | ')} |`)
  }
}

/** Installs the packages of a side, and bundles its app twice: with its packages, and without. */
async function install(side: Side, name: string): Promise<Costs> {
  const path = join(folder, name)
  mkdirSync(path)
  writeFileSync(join(path, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }))
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--silent']
  execFileSync('npm', ['install', ...flags, ...side.packages], { cwd: path, stdio: 'inherit' })
  const entry = join(path, 'app.ts')
  copyFileSync(join(ROOT, side.entry), entry)
  const settings: BuildOptions = {
    entryPoints: [entry],
    absWorkingDir: path,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    logLevel: 'error',
  }
  await build({ ...settings, packages: 'external', outfile: join(path, 'app.mjs') })
  const bundle = join(path, 'bundle.mjs')
  await build({
    ...settings,
    conditions: ['workerd', 'worker', 'browser', 'import'],
    external: ['node:*', 'cloudflare:*'],
    outfile: bundle,
  })
  const code = readFileSync(bundle)
  const list = ['ls', '--all', '--parseable']
  const installed = execFileSync('npm', list, { cwd: path, encoding: 'utf8' })
  return {
    side,
    path,
    packages: installed.trim().split('\n').length - 1,
    installedBytes: bytesIn(join(path, 'node_modules')),
    rawBytes: code.length,
    gzipBytes: gzipSync(code).length,
  }
}

function bytesIn(path: string): number {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/** Returns the milliseconds that a new process of this Node needs to import a module. */
function timeImport(file: string): number {
  const script =
    'const from = performance.now(); await import(process.argv[1]); console.log(performance.now() - from)'
  const args = ['--input-type=module', '--eval', script, file]
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
}
