/** The configuration of the main Worker of a project. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

export const MAIN_CONFIG = 'wrangler.toml'
/** Creates a project. The registry does not have the package yet. */
export const CREATE_COMMAND = '`npm run create -- DIRECTORY` in a checkout of portcullis'
export const POLICY_FILE = 'portcullis.config.ts'

/** Reports whether the project in the folder `root` has a Worker. */
export const isWorkerFolder = (root: string): boolean => existsSync(join(root, MAIN_CONFIG))

/** Returns the problem if the folder `root` has no `wrangler.toml`, or else undefined. */
export function missingConfig(root: string): string | undefined {
  if (isWorkerFolder(root)) return undefined
  return (
    `there is no ${MAIN_CONFIG} and no portcullis.config.ts in ${root}; ${CREATE_COMMAND} ` +
    'creates a project, and `portcullis redis` runs a Redis for an app on Node'
  )
}

/** Reports whether the project in the folder `root` has a policy and no Worker: it runs on Node. */
export const isNodeFolder = (root: string): boolean => !isWorkerFolder(root) && hasPolicy(root)

/** Reports whether the folder `root` has a policy under its usual name. */
export const hasPolicy = (root: string): boolean =>
  ['ts', 'js', 'mjs'].some((end) => existsSync(join(root, `portcullis.config.${end}`)))
