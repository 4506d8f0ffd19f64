/** Every scenario, in the order in which they run. */
import type { Scenario } from '../scenario.ts'
import { connections } from './connections.ts'
import { fullStack } from './full-stack.ts'
import { layers } from './layers.ts'
import { leases } from './leases.ts'
import { manyConnections } from './many-connections.ts'
import { memory } from './memory.ts'
import { offeredLoad } from './offered-load.ts'
import { peers } from './peers.ts'
import { permissions } from './permissions.ts'
import { refusals } from './refusals.ts'
import { relations } from './relations.ts'
import { scaling } from './scaling.ts'
import { sessions } from './sessions.ts'
import { singleFlight } from './single-flight.ts'
import { tokens } from './tokens.ts'
import { validationCache } from './validation-cache.ts'

/** One import and one line for each file of this folder. */
export const SCENARIOS: readonly Scenario[] = [
  layers,
  offeredLoad,
  tokens,
  sessions,
  scaling,
  memory,
  peers,
  connections,
  fullStack,
  validationCache,
  permissions,
  relations,
  leases,
  refusals,
  manyConnections,
  singleFlight,
]
