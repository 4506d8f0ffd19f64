/** `portcullis dev`: runs the project on this machine, as `npm start` does in a checkout. */
import type { Command } from '@commander-js/extra-typings'
import { isNodeFolder, missingConfig } from '../../dev/start/main-config.ts'
import { offlineCommand } from '../command.ts'
import { usage } from '../failure.ts'
import { requireProject } from '../project.ts'

/** Required by wrangler. */
const MINIMUM_NODE = [22, 12] as const

const HELP = `
Runs Redis, the Upstash REST server over it, the audit consumer and the gateway of this project, and an
origin for demonstration unless ORIGIN_URL is set. A project with a wrangler.toml runs as a Worker. One with a
portcullis.config.ts and no wrangler.toml runs on Node, and uses a changed policy without a restart. Ctrl-C stops all of them. The ready line and example
requests go to stdout, progress to stderr. With --json, stdout gets one object with the URL.

Environment: the variables of \`npm start\`, see docs/environment.md: PORT, REDIS_URL, ORIGIN_URL,
ISSUERS and others. Variables in .dev.vars and wrangler.toml are used if the environment lacks them.

An app on Node needs only a Redis: see \`portcullis redis\`.`

export function addDevCommand(program: Command): void {
  offlineCommand(program, {
    name: 'dev',
    does: 'run this project on this machine: Redis, the audit consumer and the gateway',
    examples: ['portcullis dev', 'portcullis dev --verbose'],
  })
    .addHelpText('after', HELP)
    .option('--verbose', 'print the whole output of wrangler')
    .action(async ({ json = false, verbose = false }) => {
      const root = requireProject(process.cwd())
      requireNode(process.versions.node, root)
      const { serveFolder } = await import('../serve-folder.ts')
      await serveFolder(root, { json, verbose })
    })
}

/**
 * Throws a failure if this version of Node is too old for wrangler. It also reports a missing
 * `wrangler.toml`, so that a newer Node is not installed in vain.
 */
export function requireNode(version: string, root: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor, leastMinor] = MINIMUM_NODE
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return
  const isOnNode = isNodeFolder(root)
  const missing = isOnNode ? undefined : missingConfig(root)
  throw usage(
    `this is Node ${version}, and ${isOnNode ? 'the server' : 'wrangler'} needs Node ${MINIMUM_NODE.join('.')} or later; ` +
      'install it, or run `npm install --save-dev node` and start with `npm start` or npx' +
      (missing === undefined ? '' : `. Also, ${missing}`),
  )
}
