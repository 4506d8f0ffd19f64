/**
 * `npm run check:size`: bundles the gateway as a deployment would, offline, and fails when it has
 * grown past its budget. What counts is the code after gzip: that is what an isolate loads.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ROOT } from './start/settings.ts'
import { complaint, startWrangler } from './start/wrangler.ts'

const BYTES_PER_KIB = 1_024
/**
 * Well below any platform limit, but every isolate parses it; a library that slips in shows. Of it
 * relations are some 24 KiB, see docs/decisions/0044.
 */
const MAX_GZIP_BYTES = 210 * BYTES_PER_KIB

/** Bundles the gateway into `outdir`. Throws wrangler's complaint. */
async function bundle(outdir: string): Promise<void> {
  const args = ['deploy', '-c', 'wrangler.toml', '--dry-run', '--outdir', outdir]
  const run = startWrangler(args, outdir)
  if ((await run.ended) !== 0) throw new Error(complaint(run.lines()))
}

/** The code of a bundle: no source map, and nothing else that is not uploaded. */
function codeIn(outdir: string): Buffer {
  const files = readdirSync(outdir).filter((file) => /\.(m?js|wasm)$/.test(file))
  if (files.length === 0) throw new Error('the bundle has no code')
  return Buffer.concat(files.map((file) => readFileSync(join(outdir, file))))
}

function kib(bytes: number): string {
  return `${(bytes / BYTES_PER_KIB).toFixed(1)} KiB`
}

const parent = join(ROOT, '.wrangler')
mkdirSync(parent, { recursive: true })
const outdir = mkdtempSync(join(parent, 'check-size-'))
try {
  await bundle(outdir)
  const code = codeIn(outdir)
  const gzipBytes = gzipSync(code).length
  console.log(
    `gateway: ${kib(code.length)}, gzip ${kib(gzipBytes)} (budget ${kib(MAX_GZIP_BYTES)})`,
  )
  if (gzipBytes > MAX_GZIP_BYTES) {
    console.error('check:size: the gateway is over its budget')
    process.exitCode = 1
  }
} catch (error) {
  console.error(`check:size: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  rmSync(outdir, { recursive: true, force: true })
}
