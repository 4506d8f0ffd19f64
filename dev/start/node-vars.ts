/** The variables of a gateway on Node on this machine. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Prepared } from './prepare.ts'

/** Returns the variables of the gateway, with Redis over RESP unless it is at Upstash. */
export function nodeVars({
  vars,
  redis,
  instance,
}: Pick<Prepared, 'vars' | 'redis' | 'instance'>): Readonly<Record<string, string | undefined>> {
  mkdirSync(instance.stateDirectory, { recursive: true })
  const stored = { AUDIT_DATABASE: `sqlite:${join(instance.stateDirectory, 'audit.db')}`, ...vars }
  if (redis.redisUrl === undefined) return stored
  return {
    ...stored,
    UPSTASH_REDIS_REST_URL: undefined,
    UPSTASH_REDIS_REST_TOKEN: undefined,
    REDIS_URL: redis.redisUrl,
  }
}

/** A server in this process, as the process that `untilReady` follows: it has no output of its own. */
export const IN_PROCESS = { ended: new Promise<never>(() => {}), lines: () => [] }
