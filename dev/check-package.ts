/**
 * `npm run check:package`: packs the package that it has built, and checks what a consumer would install:
 * its files and size, its exports, the size of an app that uses the fewest parts, and the findings
 * of publint and @arethetypeswrong/cli. Prints the number of exports of each subpath.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { type Packed, packPackage } from './package/pack.ts'
import { subpaths } from './package/subpaths.ts'
import { ROOT } from './start/settings.ts'

const BYTES_PER_KIB = 1_024
const MAX_FILES = 219
const MAX_PACKED_BYTES = 1_850_000
/** Of `portcullis`, types included. */
const MAX_NAMES = 60
/** An app with few parts, and its budget in KiB after gzip: just above the measured size. */
const FEWEST_PARTS = { entry: 'examples/parts/worker.ts', maxKib: 60.8 }

/** Licenses that permit copies in a package under the MIT license. */
const PERMISSIVE = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD']

/** Everything that the package may contain. */
const ALLOWED =
  /^(?:(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)|migrations\/\d+_\w+\.sql|schemas\/[\w-]+\.json|docs\/[\w-]+\.md|examples\/hono\/\w+\.ts|ops\/(?:redis\.conf|(?:haproxy|nginx|systemd|forward-auth)\/[\w.@-]+)|dist\/cli\/(?:THIRD-PARTY\.txt|recheck\.js\.br)|dist\/.*\.(?:js|d\.ts|mjs))$/

/** Types that only `@cloudflare/workers-types`, `@types/node` or a recent compiler declares, or that need those. */
const AMBIENT =
  /(?<![\w.'"`])(?:Uint8Array<|D1Database|R2Bucket|ExportedHandler|MessageBatch|NodeJS\.|LRUCache)/

const failures: string[] = []
const folder = mkdtempSync(join(tmpdir(), 'check-package-'))
try {
  const packed = packPackage(folder)
  const tarball = join(folder, packed.filename)
  execFileSync('tar', ['xzf', tarball, '-C', folder])
  checkFiles(packed, join(folder, 'package'))
  checkNotices(join(folder, 'package', 'dist/cli/THIRD-PARTY.txt'))
  await checkExports(join(folder, 'package'))
  await checkFewestParts(join(folder, 'package'))
  run('publint', ['run', tarball, '--strict'])
  run('attw', [tarball, '--profile', 'esm-only', '--format', 'ascii'])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const failure of failures) console.error(`check:package: ${failure}`)
if (failures.length > 0) process.exitCode = 1

function checkFiles({ files, size, unpackedSize }: Packed, unpacked: string): void {
  console.log(`${files.length} files, ${size} bytes packed, ${unpackedSize} unpacked`)
  if (files.length > MAX_FILES) failures.push(`the package has more than ${MAX_FILES} files`)
  if (size > MAX_PACKED_BYTES)
    failures.push(`the package has more than ${MAX_PACKED_BYTES} bytes when packed`)
  for (const { path } of files)
    if (!ALLOWED.test(path)) failures.push(`${path}: does not belong to the package`)
  for (const path of readdirSync(unpacked, { recursive: true, encoding: 'utf8' })) {
    if (!statSync(join(unpacked, path)).isFile()) continue
    const text = readFileSync(join(unpacked, path), 'utf8')
    for (const place of [ROOT, homedir()])
      if (text.includes(`${place}/`)) failures.push(`${path}: contains the path ${place}`)
    if (/^dist\/.*\.js$/.test(path))
      // Imports, and modules that are started as threads.
      for (const [, named = ''] of text.matchAll(/["'`](\.{1,2}\/[\w./-]+\.js)["'`]/g))
        if (!existsSync(join(unpacked, dirname(path), named)))
          failures.push(`${path}: names ${named}, which the package does not contain`)
    if (!path.endsWith('.d.ts')) continue
    const declarations = text.replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
    if (/(?:from|import\() ?['"]\.[^'"]*\.ts['"]/.test(declarations))
      failures.push(`${path}: imports a .ts file`)
    const ambient = AMBIENT.exec(declarations)
    if (ambient) failures.push(`${path}: names ${ambient[0]}, which a consumer may not have`)
  }
}

/** The command line contains packages, and `dist` the client of Redis, so their licenses must be in the package. */
function checkNotices(file: string): void {
  const notices = existsSync(file) ? readFileSync(file, 'utf8').split(/\n\n-{80}\n\n/) : []
  console.log(`${notices.length} packages in the command line, and the client of Redis`)
  for (const name of ['commander', '@upstash/redis'])
    if (!notices.some((notice) => notice.startsWith(`${name} `)))
      failures.push(`dist/cli/THIRD-PARTY.txt: does not name ${name}`)
  for (const notice of notices) {
    const [title = '', ...text] = notice.trim().split('\n')
    const [, license = ''] = / \((.+)\)$/.exec(title) ?? []
    if (!PERMISSIVE.includes(license)) failures.push(`${title}: not a license that permits copies`)
    if (text.length === 0) console.log(`${title}: has no text of its license`)
  }
}

/** Compares what a subpath exports when it runs with what its declarations export. */
async function checkExports(unpacked: string): Promise<void> {
  for (const { specifier, built } of subpaths()) {
    // The packages that it imports are those of this checkout.
    const module: object = await import(pathToFileURL(join(ROOT, 'dist', `${built}.js`)).href)
    const values = Object.keys(module)
    const names = declaredNames(join(unpacked, 'dist', `${built}.d.ts`))
    const missing = values.filter((name) => !names.has(name))
    console.log(`${specifier}: ${names.size} exports, ${values.length} of them values`)
    if (missing.length > 0) failures.push(`${specifier}: has no types for ${missing.join(', ')}`)
    if (specifier === 'portcullis' && names.size > MAX_NAMES)
      failures.push(`${specifier}: exports more than ${MAX_NAMES} names`)
  }
}

/** Returns the names that a built declaration file exports, types included. */
function declaredNames(file: string): ReadonlySet<string> {
  const text = readFileSync(file, 'utf8')
  const declared = text.matchAll(
    /^export (?:declare )?(?:const|function|class|interface|type) (\w+)/gm,
  )
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names.split(',').map((name) =>
      name
        .trim()
        .replace(/^type /, '')
        .replace(/^.* as /, ''),
    ),
  )
  return new Set([...[...declared].map(([, name = '']) => name), ...listed].filter(Boolean))
}

/** Bundles an app as wrangler does, with the packed package instead of the source. */
async function checkFewestParts(unpacked: string): Promise<void> {
  const { entry, maxKib } = FEWEST_PARTS
  const { outputFiles } = await build({
    entryPoints: [join(ROOT, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    nodePaths: [join(ROOT, 'node_modules')],
    alias: { 'portcullis/parts': join(unpacked, 'dist', 'parts.js') },
    tsconfigRaw: {},
  })
  const kib = gzipSync(outputFiles[0]?.contents ?? '').length / BYTES_PER_KIB
  console.log(`${entry}: gzip ${kib.toFixed(1)} KiB (budget ${maxKib} KiB)`)
  if (kib > maxKib) failures.push(`${entry}: exceeds its size limit`)
}

/** Runs a checker of packages. It is silent unless it finds something. */
function run(command: string, args: readonly string[]): void {
  const program = join(ROOT, 'node_modules', '.bin', command)
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  console.log(`${command}: ${status === 0 ? 'no findings' : `${stdout}${stderr}`}`)
  if (status !== 0) failures.push(`${command} has findings`)
}
