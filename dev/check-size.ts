/**
 * `npm run check:size`: bundles the gateway offline, as a deployment would, and fails if the bundle
 * exceeds its size budget. The budget is for the code after gzip.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ROOT } from './start/settings.ts'
import { complaint, startWrangler } from './start/wrangler.ts'

const BYTES_PER_KIB = 1_024
/**
 * Far below the limit of the platform, because each isolate must parse the code. The budget also
 * detects an unexpected library. About 24 KiB are for relations, see docs/decisions/0044, and 6 KiB
 * for the guards of paths, headers and credentials, see docs/decisions/0004, 0020 and 0050.
 */
const MAX_GZIP_BYTES = 196 * BYTES_PER_KIB

/** Bundles the gateway into `outdir`. Throws an `Error` with wrangler's message. */
async function bundle(outdir: string): Promise<void> {
  const args = ['deploy', '-c', 'wrangler.toml', '--dry-run', '--outdir', outdir]
  const run = startWrangler(args, outdir)
  if ((await run.ended) !== 0) throw new Error(complaint(run.lines()))
}

/** Returns the code of a bundle, without source maps and other files that are not uploaded. */
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
    console.error('check:size: the gateway exceeds its size limit')
    process.exitCode = 1
  }
} catch (error) {
  console.error(`check:size: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  rmSync(outdir, { recursive: true, force: true })
}
