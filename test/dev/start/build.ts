/** The build of this checkout, as `npm ci` leaves it in `dist`. */
import { existsSync } from 'node:fs'
import { cp, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { subpaths } from '../../../dev/package/subpaths.ts'
import { ROOT } from '../../harness/process.ts'
import { makeOnce } from './artifact.ts'
import { FILES, makeCheckout } from './checkout.ts'

const DIST = 'dist'

/** Returns the folder `dist` of a build of the present sources. It must not be changed. */
export async function builtPackage(): Promise<string> {
  const folder = await makeOnce({
    name: 'build',
    inputs: FILES,
    async make(folder) {
      const built = join(folder, DIST)
      if (await isCurrent()) await cp(join(ROOT, DIST), built, { recursive: true })
      else await build(built)
    },
  })
  return join(folder, DIST)
}

/** Builds a copy of this checkout, as `npm ci` does. */
async function build(destination: string): Promise<void> {
  const checkout = await makeCheckout()
  const { code, stdout, stderr } = await checkout.run(['npm', 'run', '-s', 'prepare']).ended
  if (code !== 0) throw new Error(`the package cannot be built: ${stdout}${stderr}`)
  await cp(join(checkout.path, DIST), destination, { recursive: true })
  await checkout.close()
}

/**
 * Reports whether `dist` is complete, and each of its files newer than every input, as directly after `npm ci`. A
 * build removes the old files first, so a build that failed leaves an incomplete folder.
 */
async function isCurrent(): Promise<boolean> {
  const modules = subpaths().flatMap(({ built }) => [`${built}.js`, `${built}.d.ts`])
  for (const file of ['portcullis.mjs', ...modules])
    if (!existsSync(join(ROOT, DIST, file))) return false
  const built = await timesBelow(DIST)
  const inputs = await Promise.all(FILES.map(timesBelow))
  return Math.max(...inputs.flat()) < Math.min(...built)
}

/** Returns when each file and folder below a path was changed. A folder changes when a file of it is removed. */
async function timesBelow(path: string): Promise<readonly number[]> {
  const entry = await stat(join(ROOT, path))
  if (!entry.isDirectory()) return [entry.mtimeMs]
  const names = (await readdir(join(ROOT, path))).filter((name) => name !== '.wrangler')
  const below = await Promise.all(names.map((name) => timesBelow(join(path, name))))
  return [entry.mtimeMs, ...below.flat()]
}
