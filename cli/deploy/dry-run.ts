/** Bundles the Workers of an environment and reports their sizes. Needs no account and no network. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Failure } from '../failure.ts'
import { writeConfigurations } from './carry-out.ts'
import { deployArguments, type Environment } from './environment.ts'
import type { Scratch } from './secrets.ts'
import type { RunWrangler } from './wrangler.ts'

export interface BundleSize {
  readonly worker: string
  readonly bytes: number
  readonly gzipBytes: number
}

const ADDRESS = 'https://gateway.invalid'

/** Returns the size of each bundle. Throws a {@link Failure} with wrangler's message. */
export async function bundleSizes(
  environment: Environment,
  wrangler: RunWrangler,
  scratch: Scratch,
): Promise<readonly BundleSize[]> {
  writeConfigurations(environment, new Map(), ADDRESS)
  const sizes: BundleSize[] = []
  for (const worker of environment.workers) {
    const outdir = join(scratch.path, worker.name)
    try {
      await wrangler([
        ...deployArguments(environment, worker),
        ...['--dry-run', '--outdir', outdir],
      ])
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      throw new Failure(error.exitCode, error.code, `${worker.file}: ${error.message}`)
    }
    sizes.push({ worker: worker.name, ...sizeOf(outdir) })
  }
  return sizes
}

function sizeOf(outdir: string): Omit<BundleSize, 'worker'> {
  const code = Buffer.concat(
    readdirSync(outdir)
      .filter((file) => !file.endsWith('.map') && !file.endsWith('.md'))
      .map((file) => readFileSync(join(outdir, file))),
  )
  return { bytes: code.length, gzipBytes: gzipSync(code).length }
}
