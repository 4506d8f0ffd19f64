/** Configures wrangler to bundle another policy file, in any folder, instead of the default one. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './settings.ts'

/** Packages that a policy may import, even if its folder has no packages or has others. */
const PACKAGES = ['portcullis', 'zod', 'hono'] as const

/** Returns a module that re-exports `policyFile`. The build fails if that file is missing. */
export const policyModule = (policyFile: string): string =>
  `export { default } from ${JSON.stringify(policyFile)}\n`

/**
 * Returns the text of a `tsconfig.json` with `paths`. It maps `#policy` to `module`, a file with
 * {@link policyModule}. This file must exist, because otherwise the default policy would be used.
 * It also maps the packages that a policy imports to the copies of this checkout. With two copies
 * of `portcullis`, there would be two policies.
 */
export function policyTsconfig(module: string): string {
  const paths: Record<string, readonly string[]> = { '#policy': [module] }
  for (const specifier of PACKAGES.flatMap(specifiersOf)) {
    paths[specifier] = [fileURLToPath(import.meta.resolve(specifier))]
  }
  return JSON.stringify({ compilerOptions: { paths } })
}

/** Returns the import specifiers that a package exports by name, not by pattern. */
function specifiersOf(name: string): readonly string[] {
  const folder = name === 'portcullis' ? ROOT : join(ROOT, 'node_modules', name)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>
  }
  return Object.keys(manifest.exports)
    .filter((subpath) => !subpath.includes('*') && !subpath.endsWith('.json'))
    .map((subpath) => `${name}${subpath.slice(1)}`)
}
