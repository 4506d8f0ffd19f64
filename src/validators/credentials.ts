/** The gateway's own credentials at an origin, in a policy. */
import * as z from 'zod/mini'
import type { Feature } from './feature.ts'

/** Accepts only what a function of `portcullis/credentials` returned. */
export const credentialsSchema = z.custom<Feature<'credentials'>>(
  (value) => (value as Feature<'credentials'> | null)?.feature === 'credentials',
  "must be the result of secret() or clientCredentials() from 'portcullis/credentials'",
)
