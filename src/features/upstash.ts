/** The engine of `@upstash/ratelimit`: `import { upstash } from 'portcullis/upstash'`. */
import { type PipelinedEngine, upstashEngine } from '../admission/redis/upstash-engine.ts'

/**
 * Returns the engine that counts a limit with the sliding window of `@upstash/ratelimit`, for
 * `engine` of a limit. It is an approximation; without it a limit is exact.
 *
 * @example
 * ```ts
 * standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny', engine: upstash() }
 * ```
 */
export function upstash(): PipelinedEngine {
  return upstashEngine
}
