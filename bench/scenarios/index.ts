/** Every scenario, in the order in which they run. */
import type { Scenario } from '../scenario.ts'
import { browserSessions } from './browser-sessions.ts'
import { connections } from './connections.ts'
import { layers } from './layers.ts'
import { leases } from './leases.ts'
import { node } from './node.ts'
import { offeredLoad } from './offered-load.ts'
import { peers } from './peers.ts'
import { relations } from './relations.ts'
import { sessions } from './sessions.ts'
import { tokens } from './tokens.ts'

/** One import and one line for each file of this folder. */
export const SCENARIOS: readonly Scenario[] = [
  layers,
  offeredLoad,
  connections,
  tokens,
  sessions,
  browserSessions,
  peers,
  relations,
  leases,
  node,
]
