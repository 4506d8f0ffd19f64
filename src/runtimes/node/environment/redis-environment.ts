/** The variables of a Redis with replicas: behind Sentinels, or a cluster. */
import * as z from 'zod/mini'
import { converted } from '../../../validators/schema-parts.ts'

/** A fence must be longer than its own proof, and shorter than any failover. */
export const MIN_FENCE_MS = 400
export const MAX_FENCE_MS = 60_000
export const MAX_REPLICAS = 5

const wholeNumber = (min: number, max: number) =>
  converted(
    z
      .string()
      .check(
        z.refine(
          (text) => /^\d{1,5}$/.test(text) && Number(text) >= min && Number(text) <= max,
          `must be a whole number from ${min} to ${max}`,
        ),
      ),
    Number,
  )

export const redisNodeVariables = {
  REDIS_FENCE_MS: z.optional(wholeNumber(MIN_FENCE_MS, MAX_FENCE_MS)),
  REDIS_REPLICAS_ACKED: z.optional(wholeNumber(0, MAX_REPLICAS)),
  REDIS_EVICTION: z.optional(z.enum(['refused', 'accepted'], 'must be refused or accepted')),
}

const schema = z.object(redisNodeVariables)

/** Reads the settings of valid variables. Returns the defaults for variables with mistakes. */
export function redisNodeSettings(variables: unknown) {
  const { REDIS_FENCE_MS, REDIS_REPLICAS_ACKED, REDIS_EVICTION } =
    schema.safeParse(variables).data ?? {}
  return {
    fenceMs: REDIS_FENCE_MS,
    replicasAcked: REDIS_REPLICAS_ACKED,
    acceptsEviction: REDIS_EVICTION === 'accepted',
  }
}
