/** Makes wrangler bundle another policy file, wherever it lies, instead of the one that ships. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './settings.ts'

/** What a policy may import, whether or not it lies in a folder that has packages of its own. */
const PACKAGES = ['portcullis', 'zod', 'hono'] as const

/** A module that is `policyFile`, and an error of the build where that is gone. */
export const policyModule = (policyFile: string): string =>
  `export { default } from ${JSON.stringify(policyFile)}\n`

/**
 * Returns the text of a `tsconfig.json` whose `paths` map `#policy` to `module`, a file with
 * {@link policyModule} that must not vanish, for then the policy that ships would take its place; and what a
 * policy imports to the copies of this checkout: two copies of `portcullis` would be two policies.
 */
export function policyTsconfig(module: string): string {
  const paths: Record<string, readonly string[]> = { '#policy': [module] }
  for (const specifier of PACKAGES.flatMap(specifiersOf)) {
    paths[specifier] = [fileURLToPath(import.meta.resolve(specifier))]
  }
  return JSON.stringify({ compilerOptions: { paths } })
}

/** The import specifiers that a package exports by name (not by pattern). */
function specifiersOf(name: string): readonly string[] {
  const folder = name === 'portcullis' ? ROOT : join(ROOT, 'node_modules', name)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>
  }
  return Object.keys(manifest.exports)
    .filter((subpath) => !subpath.includes('*') && !subpath.endsWith('.json'))
    .map((subpath) => `${name}${subpath.slice(1)}`)
}
