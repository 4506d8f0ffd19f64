/** The engine of `@upstash/ratelimit`: `import { upstash } from 'portcullis/upstash'`. */
import type { PipelinedEngine } from '../../access/admission/redis/limit-engine.ts'
import { upstashEngine } from './engine.ts'

/** Returns the approximate sliding window of `@upstash/ratelimit`, for `engine` of a limit. */
export function upstash(): PipelinedEngine {
  return upstashEngine
}
