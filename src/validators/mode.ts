/** Modes of a rule: enforced or only observed. */
import * as z from './zod.ts'

/** `observe`: the rule refuses nothing, and the audit event records what it would refuse. */
export const MODES = ['enforce', 'observe'] as const
export type Mode = (typeof MODES)[number]

/** The `mode` of a rule. The default is `enforce`. */
export const modeSchema = z.enum(MODES, { error: "must be 'enforce' or 'observe'" })
