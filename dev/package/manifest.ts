/** The `package.json` of the packed package. */
import { normalize } from 'node:path'

type Manifest = Readonly<Record<string, unknown>>

/** Fields for a checkout. A user of the package neither builds nor tests it. */
const OF_CHECKOUT = [
  'allowScripts',
  'devDependencies',
  'imports',
  'overrides',
  'scripts',
  'simple-git-hooks',
  'workspaces',
]

/** Packages of which the build contains all that it uses. */
const CONTAINED = ['@upstash/redis']

/** Returns the manifest without what only a checkout needs. */
export function published(manifest: string): string {
  const fields = Object.entries(JSON.parse(manifest) as Manifest)
  const kept = fields
    .filter(([name]) => !OF_CHECKOUT.includes(name))
    .map(([name, value]) => [name, name === 'dependencies' ? withoutContained(value) : value])
  return `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`
}

const withoutContained = (dependencies: unknown) =>
  Object.fromEntries(
    Object.entries(dependencies as Manifest).filter(([name]) => !CONTAINED.includes(name)),
  )

/** Throws unless `paths` contains each file that the manifest names. */
export function requireFiles(manifest: string, paths: ReadonlySet<string>): void {
  const { bin, exports } = JSON.parse(manifest) as Manifest
  const missing = textsIn([bin, exports]).find((path) => !paths.has(normalize(path)))
  if (missing !== undefined)
    throw new Error(
      `the package is not built: there is no ${normalize(missing)}; run \`npm run build\` first`,
    )
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
