/** Whether a rule is in force, or only watched. */
import * as z from 'zod'

/** `observe`: what the rule would refuse is let through, and told in the audit event. */
export const MODES = ['enforce', 'observe'] as const
export type Mode = (typeof MODES)[number]

/** A rule's `mode`; who leaves it out means `enforce`. */
export const modeSchema = z.enum(MODES, { error: "must be 'enforce' or 'observe'" })
