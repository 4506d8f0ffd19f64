/**
 * `npm run prepare`: bundles the command line into one file that runs on Node 20 or later. This
 * file is plain JavaScript, so that the Node version that installs the package can run it.
 */
import { chmod } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const inPackage = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const EXECUTABLE = 0o755

/** Returns esbuild, or undefined when the package was installed without its dev dependencies. */
async function bundler() {
  try {
    return await import('esbuild')
  } catch (error) {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

const esbuild = await bundler()
if (esbuild === undefined) {
  console.error('portcullis: the command line is not bundled; run `npm ci` in its folder')
} else {
  const outfile = inPackage('dist/portcullis.mjs')
  await esbuild.build({
    entryPoints: [inPackage('cli/main.ts')],
    outfile,
    bundle: true,
    minify: true,
    legalComments: 'inline',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  })
  await chmod(outfile, EXECUTABLE)
}
