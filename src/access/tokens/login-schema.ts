/** The schema of what is known of a login, in records of tokens and sessions. */
import * as z from 'zod/mini'
import { integer } from '../../validators/schema-parts.ts'

/** What is known of the login of a user; see `LoginFacts`. */
export const loginSchema = z.strictObject({
  acr: z.optional(z.string()),
  amr: z.optional(z.readonly(z.array(z.string()))),
  authTimeSeconds: z.optional(integer()),
})
