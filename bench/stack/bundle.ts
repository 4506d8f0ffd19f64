/** Bundles a Worker of the benchmark with wrangler, as a deployment would. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { complaint, startWrangler } from '../../dev/start/wrangler.ts'

/** Path of the Worker's configuration in the checkout. It has the name of its entry point. */
export const REQUESTS_CONFIG = 'bench/workers/requests.toml'

export interface Bundle {
  /** Path of the bundle, one ES module. */
  readonly file: string
  readonly compatibilityDate: string
  readonly compatibilityFlags: readonly string[]
}

/** Writes the bundle below `directory`. With `names`, the bundle is not minified. */
export async function bundleWorker(
  config: string,
  directory: string,
  names = false,
): Promise<Bundle> {
  const name = basename(config, '.toml')
  const outdir = join(directory, names ? `${name}-with-names` : name)
  const wrangler = startWrangler(
    [
      ...['deploy', '-c', config, '--dry-run', '--outdir', outdir],
      ...(names ? ['--minify=false'] : []),
    ],
    directory,
  )
  const code = await wrangler.ended
  if (code !== 0) throw new Error(`cannot bundle ${config}: ${complaint(wrangler.lines())}`)
  return { file: join(outdir, `${name}.js`), ...compatibilityOf(config) }
}

/** The minified bundles of this process, by configuration. */
const bundles = new Map<string, Bundle>()

/** Bundles a Worker once for all scenarios of a run, minified as it is deployed. */
export async function bundleOnce(config: string, directory: string): Promise<Bundle> {
  const known = bundles.get(config)
  if (known !== undefined && existsSync(known.file)) return known
  const bundle = await bundleWorker(config, directory)
  bundles.set(config, bundle)
  return bundle
}

function compatibilityOf(path: string): Omit<Bundle, 'file'> {
  const config = readFileSync(join(ROOT, path), 'utf8')
  const [, date] = /^compatibility_date = "(.*)"$/m.exec(config) ?? []
  if (date === undefined) throw new Error(`${path}: missing compatibility_date`)
  const [, flags = ''] = /^compatibility_flags = \[(.*)\]$/m.exec(config) ?? []
  return { compatibilityDate: date, compatibilityFlags: flags.match(/\w+/g) ?? [] }
}
