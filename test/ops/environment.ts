/** Checks the variables that a file of `ops/` sets. */

import { EVERY_FEATURE, parseConfig } from '../../src/features/environment.ts'
import { nodeEnvironment } from '../../src/runtimes/node/environment/node-environment.ts'

/** Throws `Misconfigured` with all mistakes, as a gateway on Node. */
export function checkEnvironment(variables: Readonly<Record<string, string | undefined>>): void {
  parseConfig(variables, nodeEnvironment(variables, EVERY_FEATURE))
}
