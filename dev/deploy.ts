/**
 * `npm run deploy`: deploys all Workers in the order of their dependencies. With `--dry-run`,
 * bundles them and prints their sizes, without network access.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { checkModelIn } from './model/file.ts'
import { ROOT } from './start/settings.ts'
import { complaint, startWrangler, WRANGLER } from './start/wrangler.ts'

const USAGE = `npm run deploy [-- --dry-run]

Deploys the Workers with wrangler, after the migrations of the audit database.

  --dry-run   bundles the Workers and prints their sizes; needs no account and no network
  --help`

const GATEWAY = 'wrangler.toml'
const AUDIT = 'workers/audit.toml'
const DEMO_ORIGIN = 'workers/origin.toml'
const AUDIT_DATABASE = 'portcullis-audit'

const BYTES_PER_KIB = 1024
const PLACEHOLDER_ID = '"00000000-0000-0000-0000-000000000000"'

interface BundleSize {
  readonly bytes: number
  readonly gzipBytes: number
}

/**
 * Returns the configuration files in the order of their dependencies. Includes the demo origin only
 * if the gateway binds it.
 */
function configurations(): readonly string[] {
  const bindsDemo = /^\s*service\s*=\s*"portcullis-origin"/m.test(textOf(GATEWAY))
  return [...(bindsDemo ? [DEMO_ORIGIN] : []), AUDIT, GATEWAY]
}

/** Deploys all Workers. Throws an `Error` of one line if a step fails. */
function deploy(): void {
  for (const config of [GATEWAY, AUDIT]) {
    if (textOf(config).includes(PLACEHOLDER_ID)) {
      throw new Error(
        `${config} has no database_id; \`wrangler d1 create ${AUDIT_DATABASE}\` prints one`,
      )
    }
  }
  wrangler('d1', 'migrations', 'apply', AUDIT_DATABASE, '--remote', '-c', AUDIT)
  for (const config of configurations()) wrangler('deploy', '-c', config)
}

function wrangler(...args: readonly string[]): void {
  const { status } = spawnSync(process.execPath, [WRANGLER, ...args], {
    cwd: ROOT,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error(`wrangler ${args.join(' ')} failed`)
}

/** Bundles every Worker and prints one line for each. Throws an `Error` with wrangler's message. */
async function dryRun(): Promise<void> {
  const parent = join(ROOT, '.wrangler')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, 'dry-run-'))
  try {
    for (const config of configurations()) {
      const outdir = join(directory, config.replaceAll('/', '-'))
      const args = ['deploy', '-c', config, '--dry-run', '--outdir', outdir]
      const run = startWrangler(args, directory)
      const code = await run.ended
      if (code !== 0) throw new Error(`${config}: ${complaint(run.lines())}`)
      const { bytes, gzipBytes } = bundleSize(outdir)
      console.log(`${nameOf(config)}: ${kib(bytes)} KiB, gzip ${kib(gzipBytes)} KiB`)
    }
    console.log('Nothing was deployed.')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function bundleSize(outdir: string): BundleSize {
  const code = Buffer.concat(
    readdirSync(outdir)
      .filter((file) => !file.endsWith('.map') && !file.endsWith('.md'))
      .map((file) => readFileSync(join(outdir, file))),
  )
  return { bytes: code.length, gzipBytes: gzipSync(code).length }
}

function nameOf(config: string): string {
  return /^name\s*=\s*"([^"]+)"/m.exec(textOf(config))?.[1] ?? config
}

function textOf(config: string): string {
  return readFileSync(join(ROOT, config), 'utf8')
}

function kib(bytes: number): string {
  return (bytes / BYTES_PER_KIB).toFixed(1)
}

try {
  const { values } = parseArgs({
    options: { 'dry-run': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(USAGE)
  } else {
    await checkModelIn(ROOT)
    if (values['dry-run']) await dryRun()
    else deploy()
  }
} catch (error) {
  console.error(`deploy: ${(error as Error).message}`)
  process.exit(1)
}
