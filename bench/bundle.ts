/** Bundles the Worker of the benchmark with wrangler, as a deployment would. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../dev/start/settings.ts'
import { complaint, startWrangler } from '../dev/start/wrangler.ts'

/** Configuration of the Worker, from the checkout. */
export const WORKER_CONFIG = 'bench/workers/layers.toml'
const BUNDLE_FILE = 'layers.js'

export interface Bundle {
  /** One ES module. */
  readonly file: string
  readonly compatibilityDate: string
  readonly compatibilityFlags: readonly string[]
}

/** Writes the bundle below `directory`; with `names`, as it is written, not minified. */
export async function bundleWorker(directory: string, names = false): Promise<Bundle> {
  const outdir = join(directory, names ? 'bundle-with-names' : 'bundle')
  const wrangler = startWrangler(
    [
      ...['deploy', '-c', WORKER_CONFIG, '--dry-run', '--outdir', outdir],
      ...(names ? ['--minify=false'] : []),
    ],
    directory,
  )
  const code = await wrangler.ended
  if (code !== 0) throw new Error(`the bundle: ${complaint(wrangler.lines())}`)
  return { file: join(outdir, BUNDLE_FILE), ...compatibility() }
}

function compatibility(): Omit<Bundle, 'file'> {
  const config = readFileSync(join(ROOT, WORKER_CONFIG), 'utf8')
  const [, date] = /^compatibility_date = "(.*)"$/m.exec(config) ?? []
  if (date === undefined) throw new Error(`${WORKER_CONFIG}: has no compatibility_date`)
  const [, flags = ''] = /^compatibility_flags = \[(.*)\]$/m.exec(config) ?? []
  return { compatibilityDate: date, compatibilityFlags: flags.match(/\w+/g) ?? [] }
}
