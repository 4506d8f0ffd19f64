/**
 * Runs before `npm start` in any version of Node. This file is plain JavaScript, so that an old
 * version can report the problem too.
 */
import { existsSync } from 'node:fs'

/** The first version that runs TypeScript without a flag. */
const MINIMUM = [22, 18]

const [major, minor] = process.versions.node.split('.').map(Number)
const tooOld = major < MINIMUM[0] || (major === MINIMUM[0] && minor < MINIMUM[1])

if (!existsSync(new URL('../../node_modules/wrangler', import.meta.url))) {
  console.error('portcullis: packages are missing; run `npm ci` first')
  process.exit(1)
}
if (tooOld) {
  console.error(
    `portcullis: this is Node ${process.versions.node}, and Node ${MINIMUM.join('.')} or later is ` +
      'required; `npm ci` installs one (the package `node`) unless install scripts are disabled',
  )
  process.exit(1)
}
