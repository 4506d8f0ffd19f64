/**
 * `npm run check:size`: bundles two gateways and an app offline, as a deployment would, and fails if
 * a bundle exceeds its size budget. The budgets are for the code after gzip.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { policyModule, policyTsconfig } from './start/policy-paths.ts'
import { ROOT } from './start/settings.ts'
import { complaint, startWrangler } from './start/wrangler.ts'

const BYTES_PER_KIB = 1_024

/**
 * The budgets are just above the measured sizes. They are far below the limit of the platform,
 * because each isolate must parse the code, and they detect an unexpected library. The first bundle
 * also detects an opt-in feature that a policy gets without importing it, see
 * docs/decisions/0056-opt-in-features.md.
 */
const BUNDLES = [
  { name: 'minimal gateway', policy: 'examples/minimal/policy.ts', maxKib: 119.4 },
  { name: 'demo gateway', policy: 'portcullis.config.ts', maxKib: 204.3 },
] as const

/** An app behind a guard, with the complete `zod`. It also detects a part that only gateways need. */
const APP = { name: 'guarded app', config: 'examples/hono/wrangler.toml', maxKib: 105.2 } as const

/** Bundles the gateway with a policy into `outdir`. Throws an `Error` with wrangler's message. */
async function bundleGateway(policy: string, outdir: string): Promise<void> {
  const module = join(outdir, 'policy.ts')
  writeFileSync(module, policyModule(join(ROOT, policy)))
  const tsconfig = join(outdir, 'tsconfig.json')
  writeFileSync(tsconfig, policyTsconfig(module))
  await bundle(['-c', 'wrangler.toml', '--tsconfig', tsconfig], outdir)
}

async function bundle(args: readonly string[], outdir: string): Promise<void> {
  const run = startWrangler(['deploy', ...args, '--dry-run', '--outdir', outdir], outdir)
  if ((await run.ended) !== 0) throw new Error(complaint(run.lines()))
}

/** Returns the code of a bundle, without source maps and other files that are not uploaded. */
function codeIn(outdir: string): Buffer {
  const files = readdirSync(outdir).filter((file) => /\.(m?js|wasm)$/.test(file))
  if (files.length === 0) throw new Error('the bundle has no code')
  return Buffer.concat(files.map((file) => readFileSync(join(outdir, file))))
}

const kib = (bytes: number) => `${(bytes / BYTES_PER_KIB).toFixed(1)} KiB`

const parent = join(ROOT, '.wrangler')
mkdirSync(parent, { recursive: true })

/** Bundles, reports the size, and sets the exit code if it exceeds the budget. */
async function check(
  name: string,
  maxKib: number,
  bundleInto: (outdir: string) => Promise<void>,
): Promise<void> {
  const outdir = mkdtempSync(join(parent, 'check-size-'))
  try {
    await bundleInto(outdir)
    const code = codeIn(outdir)
    const gzipBytes = gzipSync(code).length
    const budget = maxKib * BYTES_PER_KIB
    console.log(`${name}: ${kib(code.length)}, gzip ${kib(gzipBytes)} (budget ${kib(budget)})`)
    if (gzipBytes > budget) {
      console.error(`check:size: the ${name} exceeds its size limit`)
      process.exitCode = 1
    }
  } catch (error) {
    console.error(`check:size: ${name}: ${(error as Error).message}`)
    process.exitCode = 1
  } finally {
    rmSync(outdir, { recursive: true, force: true })
  }
}

for (const { name, policy, maxKib } of BUNDLES)
  await check(name, maxKib, (outdir) => bundleGateway(policy, outdir))
await check(APP.name, APP.maxKib, (outdir) => bundle(['-c', APP.config], outdir))
