/** Every scenario, in the order in which they run. */
import type { Scenario } from '../scenario.ts'
import { bursts } from './bursts.ts'
import { growth } from './growth.ts'
import { leases } from './leases.ts'
import { node } from './node.ts'

/** One import and one line for each file of this folder. */
export const SCENARIOS: readonly Scenario[] = [node, leases, bursts, growth]
