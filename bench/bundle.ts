/** Bundles a Worker of the benchmark with wrangler, as a deployment would. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../dev/start/settings.ts'
import { complaint, startWrangler } from '../dev/start/wrangler.ts'

/** Paths of the Workers' configurations in the checkout. Each has the name of its entry point. */
export const LAYERS_CONFIG = 'bench/workers/layers.toml'
export const TOKENS_CONFIG = 'bench/workers/tokens.toml'

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
  if (code !== 0) throw new Error(`the bundle: ${complaint(wrangler.lines())}`)
  return { file: join(outdir, `${name}.js`), ...compatibilityOf(config) }
}

function compatibilityOf(path: string): Omit<Bundle, 'file'> {
  const config = readFileSync(join(ROOT, path), 'utf8')
  const [, date] = /^compatibility_date = "(.*)"$/m.exec(config) ?? []
  if (date === undefined) throw new Error(`${path}: has no compatibility_date`)
  const [, flags = ''] = /^compatibility_flags = \[(.*)\]$/m.exec(config) ?? []
  return { compatibilityDate: date, compatibilityFlags: flags.match(/\w+/g) ?? [] }
}
