/** Port: the scripts that also count metered limits. `plans()` and `quotas()` bring them. */
import type { Unavailable } from '../../../errors.ts'
import type { RedisCommand, RedisConnection } from '../../../redis/connection.ts'
import type { RedisKeys } from '../../../redis/keys.ts'
import { createScript, type Script } from '../../../redis/script.ts'
import { ADMIT_SCRIPT } from '../../../redis/scripts.generated.ts'
import type { LimitRequest, LimitRule, Meter, RateLimit } from '../limit.ts'
import type { AdmissionFacts, AdmissionQuery, ReferenceFacts, ReferenceLimit } from '../store.ts'
import { admitCommand, readFacts } from './admit-script.ts'

/** A meter whose limits Redis counts. */
export interface RedisMeter extends Meter {
  /** The same for all meters. */
  readonly scripts: MeterScripts
}

/** A script of admission. */
export interface AdmissionScript {
  readonly script: Script
  /** Returns the script call; `name` is the script's digest. */
  commandOf(name: string, keys: RedisKeys, query: AdmissionQuery): RedisCommand
  factsOf(
    result: unknown,
    query: AdmissionQuery,
    nowMs: number,
    redis: RedisConnection,
  ): AdmissionFacts
}

export interface MeterScripts extends AdmissionScript {
  /** The script for references. */
  readonly resolution: Script
  /** Returns the arguments of `window_of` for a limit; `exact` are those of an exact window. */
  argumentsOf(limit: ReferenceLimit, exact: readonly number[]): readonly (string | number)[]
  /**
   * Returns the command that gives the units of a quota back. Undefined: the limit has an exact window, or
   * slots, which are released.
   */
  refundCommand(keys: RedisKeys, limit: LimitRequest, takenMicros: string): RedisCommand | undefined
  /** Adds the slot that a reference has taken. */
  stateOf(
    found: NonNullable<ReferenceFacts['limits'][number]>,
    limit: ReferenceLimit,
    redis: RedisConnection,
  ): RateLimit | Unavailable
}

export const EXACT_ADMISSION: AdmissionScript = {
  script: createScript(ADMIT_SCRIPT),
  commandOf: admitCommand,
  factsOf: readFacts,
}

/** Returns the scripts of the first metered limit. Undefined: no limit is metered. */
export function findMeterScripts(
  limits: readonly { readonly rule: LimitRule }[],
): MeterScripts | undefined {
  const metered = limits.find(({ rule }) => rule.meter !== undefined)
  return (metered?.rule.meter as RedisMeter | undefined)?.scripts
}
