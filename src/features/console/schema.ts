/** The variable of `console()`. */
import * as z from 'zod/mini'
import type { FeatureVariables } from '../../validators/environment.ts'
import { text } from '../../validators/schema-parts.ts'

const MAX_DEPLOYED_BY = 200

export const consoleVariables = {
  shape: { DEPLOYED_BY: z.optional(text(MAX_DEPLOYED_BY)) },
} satisfies FeatureVariables
