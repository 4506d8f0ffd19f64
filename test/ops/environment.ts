/** Checks the variables that a file of `ops/` sets. */

import { nodeEnvironment } from '../../src/validators/node-environment.ts'
import { EVERY_FEATURE, parseConfig } from '../../src/validators/whole-environment.ts'

/** Throws `Misconfigured` with all mistakes, as a gateway on Node. */
export function checkEnvironment(variables: Readonly<Record<string, string | undefined>>): void {
  parseConfig(variables, nodeEnvironment(variables, EVERY_FEATURE))
}
