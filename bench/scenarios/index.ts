/** Every scenario, in the order in which they run. */
import type { Scenario } from '../scenario.ts'
import { layers } from './layers.ts'
import { scaling } from './scaling.ts'
import { sessions } from './sessions.ts'
import { tokens } from './tokens.ts'

/** One import and one line for each file of this folder. */
export const SCENARIOS: readonly Scenario[] = [layers, tokens, sessions, scaling]
