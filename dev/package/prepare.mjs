/**
 * `npm run prepare`: builds the package and the command line. This file is plain JavaScript, so that
 * every Node version that installs the package can run it.
 */
import { fileURLToPath } from 'node:url'

/** Returns tsdown, or undefined when the package was installed without its dev dependencies. */
async function builder() {
  try {
    return await import('tsdown')
  } catch (error) {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

const tsdown = await builder()
if (tsdown === undefined) {
  console.error('portcullis: the package is not built; run `npm ci` in its folder')
} else {
  await tsdown.build({ cwd: fileURLToPath(new URL('../..', import.meta.url)) })
}
