/** Configures wrangler to bundle another policy file, in any folder, instead of the default one. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { subpaths } from '../package/subpaths.ts'
import { replace } from '../private-file.ts'
import { ROOT } from './settings.ts'

/** Packages that a policy may import, even if its folder has no packages or has others. */
const PACKAGES = ['zod', 'hono'] as const

/** Returns a module that re-exports `policyFile`. The build fails if that file is missing. */
export const policyModule = (policyFile: string): string =>
  `export { default } from ${JSON.stringify(policyFile)}\n`

/** Returns the file of each package that a policy imports, by its specifier. */
export function policyImports(): Readonly<Record<string, string>> {
  const sources = subpaths().map(({ specifier, source }) => [specifier, join(ROOT, source)])
  const packages = PACKAGES.flatMap(specifiersOf).map((specifier) => [
    specifier,
    fileURLToPath(import.meta.resolve(specifier)),
  ])
  return Object.fromEntries([...sources, ...packages])
}

/**
 * Returns the text of a `tsconfig.json` with `paths`. It maps `#policy` to `module`, a file with
 * {@link policyModule}. This file must exist, because otherwise the default policy would be used.
 * It also maps the packages that a policy imports to the copies of this checkout, and `portcullis`
 * to its source. With two copies of `portcullis`, there would be two policies.
 */
export function policyTsconfig(module: string): string {
  const found = Object.entries(policyImports()).map(([specifier, file]) => [specifier, [file]])
  const paths = { '#policy': [module], ...Object.fromEntries(found) }
  return JSON.stringify({ compilerOptions: { paths } })
}

/**
 * Returns the arguments with which wrangler bundles `policyFile`. Writes files to `directory`.
 */
export function policyArguments(policyFile: string, directory: string): readonly string[] {
  const module = join(directory, 'policy.ts')
  replace(module, policyModule(policyFile))
  const tsconfig = join(directory, 'tsconfig.json')
  replace(tsconfig, policyTsconfig(module))
  return ['--tsconfig', tsconfig]
}

/** Returns the import specifiers that a package exports by name, not by pattern. */
function specifiersOf(name: string): readonly string[] {
  const file = join(ROOT, 'node_modules', name, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>
  }
  return Object.keys(manifest.exports)
    .filter((subpath) => !subpath.includes('*') && !subpath.endsWith('.json'))
    .map((subpath) => `${name}${subpath.slice(1)}`)
}
