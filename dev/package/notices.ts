/** Plugin of builds that contain packages: writes their licenses. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Rolldown } from 'tsdown'

interface Manifest {
  readonly name?: string
  readonly version?: string
  readonly license?: string
}

const LICENSE = /^(?:license|copying)(?:[.-].*)?$/i

/**
 * Writes `fileName` with the name, the version and the license of each package of which a chunk contains code, and of
 * those in the folders `others`, of which another build contains code. Throws if a package has no license.
 */
export function thirdPartyNotices(
  fileName: string,
  others: readonly string[] = [],
): Rolldown.Plugin {
  return {
    name: 'third-party-notices',
    generateBundle(_, bundle) {
      const folders = new Set(others)
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk') continue
        for (const [module, { renderedLength }] of Object.entries(file.modules)) {
          if (renderedLength === 0) continue
          const folder = module.includes('/node_modules/') ? packageOf(module) : undefined
          if (folder !== undefined) folders.add(folder)
        }
      }
      const source = [...new Set([...folders].map(noticeOf))]
        .sort()
        .join(`\n\n${'-'.repeat(80)}\n\n`)
      this.emitFile({ type: 'asset', fileName, source: `${source}\n` })
    },
  }
}

/** Returns the folder of the package that contains a module. */
function packageOf(module: string): string | undefined {
  for (let folder = dirname(module); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    // Folders of modules may have a manifest without a name.
    if (existsSync(file) && manifestOf(folder).version !== undefined) return folder
  }
  return undefined
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

function noticeOf(folder: string): string {
  const { name, version, license } = manifestOf(folder)
  const texts = readdirSync(folder)
    .filter((file) => LICENSE.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8').trim())
  if (license === undefined && texts.length === 0)
    throw new Error(`${name} is part of the bundle and has no license`)
  return [`${name} ${version} (${license ?? 'see below'})`, ...texts].join('\n\n')
}
