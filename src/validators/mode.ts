import * as z from 'zod/mini'

/** `observe`: the rule refuses nothing, and the audit event records what it would refuse. */
export const modeSchema = z.enum(['enforce', 'observe'], {
  error: "must be 'enforce' or 'observe'",
})
export type Mode = z.output<typeof modeSchema>
