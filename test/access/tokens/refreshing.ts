/** Sessions over a real Redis, by two gateways that share only Redis, on a test clock. */

import { createRefreshFamilies } from '../../../src/access/tokens/redis/refresh-families.ts'
import type { Session } from '../../../src/access/tokens/refresh-family.ts'
import {
  createRefreshTokens,
  type RefreshTokens,
} from '../../../src/access/tokens/refresh-tokens.ts'
import { Denied } from '../../../src/errors.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import type { TestRedis } from '../../harness/redis.ts'
import { full, GATEWAY } from './issuing.ts'
import { NOW_MS, NOW_SECONDS } from './signer.ts'

export const GRACE_SECONDS = 10
export const MAX_ACCESS_TOKEN_SECONDS = 3_600
export const SESSION_SECONDS = 2_592_000

/** Creates a session of alice, of an external issuer and of a tenant. */
export function newSession(overrides: Partial<Session> = {}): Session {
  const id = crypto.randomUUID()
  return {
    id,
    grant: { ...full, session: id },
    startedAtSeconds: NOW_SECONDS,
    expiresAtSeconds: NOW_SECONDS + SESSION_SECONDS,
    ...overrides,
  }
}

export interface Clock {
  nowMs: number
  advance(seconds: number): void
}

/** Creates the refresh token service of one gateway, with its own or a shared `clock`. */
export function gateway(
  redis: Pick<TestRedis, 'url' | 'token'>,
  { graceSeconds = GRACE_SECONDS, clock = newClock() } = {},
): { readonly tokens: RefreshTokens; readonly clock: Clock } {
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const tokens = createRefreshTokens({
    store: createRefreshFamilies(rest),
    issuer: GATEWAY,
    graceSeconds,
    now: () => clock.nowMs,
  })
  return { tokens, clock }
}

export function newClock(): Clock {
  const clock = {
    nowMs: NOW_MS,
    advance(seconds: number) {
      clock.nowMs += seconds * 1000
    },
  }
  return clock
}

/** Resolves to `ok`, or to the check that failed with `invalid_grant`. */
export async function checkOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt
    return 'ok'
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'oauth_refused') throw error
    if (error.denial.error !== 'invalid_grant') throw error
    return error.denial.check.replace('refresh_token_', '')
  }
}

/** Everything that Redis contains, keys and values, as one text. */
export async function dump({ direct }: TestRedis): Promise<string> {
  const entries: unknown[] = []
  for (const key of await direct.keys('*')) {
    const value =
      (await direct.type(key)) === 'hash' ? await direct.hgetall(key) : await direct.get(key)
    entries.push([key, value])
  }
  return JSON.stringify(entries)
}
