/** Callers that can be revoked in every way that the gateway supports. */
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createRevocationLog } from '../../../src/access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import type { TestRedis } from '../../harness/redis.ts'
import { principal } from './callers.ts'
import type { Caller, Outcome } from './revocation-bound.ts'

/** Creates a caller with a token of the key's issuer and the principal of that token. */
export async function newCallerOf(key: TestKey, roles = ['reader']): Promise<Caller> {
  const jti = crypto.randomUUID()
  const subject = `user-${jti}`
  return {
    principal: principal({ subject, tokenId: jti, tokenIdHash: await tokenIdHash(ISSUER, jti) }),
    token: await mint(key, { claims: { sub: subject, jti, roles } }),
  }
}

/** Revokes the token, writes a cutoff, revokes as an operator, or bans the subject, in turn. */
export async function revokeAt(
  { url, token }: Pick<TestRedis, 'url' | 'token'>,
  { principal }: Caller,
  index: number,
): Promise<void> {
  const rest = createRedisRest({ url, token, timeoutMs: 20_000 })
  const { subject: value, tokenIdHash: hash = '' } = principal
  const atSeconds = Date.now() / 1000
  const by = { issuer: ISSUER, issuers: [ISSUER], createdBy: 'olga' } as const
  const order = { kind: 'subject', value, ...by } as const
  const revocations = createRevocations(rest, Date.now)
  const ways = [
    () => revocations.revokeToken({ tokenIdHash: hash, untilSeconds: atSeconds + 600 }),
    () => revocations.revokeBefore({ ...order, atSeconds, ttlSeconds: 600 }),
    () => createRevocationLog(rest, Date.now).create({ ...order, ttlSeconds: 600 }),
    () => createBanList(rest, Date.now).create({ ...order, seconds: 600 }),
  ]
  await ways[index % ways.length]?.()
}

const OUTCOMES: Readonly<Record<number, Outcome>> = {
  200: 'admitted',
  401: 'refused',
  403: 'refused',
  503: 'unavailable',
}

/** Returns the outcome of a gateway's response. Throws an `Error` for any other status. */
export function outcomeOf(status: number): Outcome {
  const outcome = OUTCOMES[status]
  if (outcome === undefined) throw new Error(`a gateway answered ${status}`)
  return outcome
}
