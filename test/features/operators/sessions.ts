/** Browser sessions of operators, without a login at a provider. */
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { createSessionStore } from '../../../src/features/sign-in/redis/session-store.ts'
import { createSeal } from '../../../src/features/sign-in/seal.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { createSessions } from '../../../src/features/sign-in/sessions.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { connectionOf } from '../../harness/lanes.ts'
import type { TestRedis } from '../../harness/redis.ts'

export interface Person {
  readonly subject?: string
  readonly roles: readonly string[]
  readonly tenant?: string
  readonly name?: string
  /** The host of the session. Default: that of `PUBLIC_URL`. */
  readonly host?: string
  /** How long ago the person signed in. Default: now. */
  readonly ageSeconds?: number
  /** How long ago the session was opened, without a request since. Default: now. It may idle for 800 seconds. */
  readonly idleForSeconds?: number
}

/** The settings of the provider at which people sign in. */
export const SIGN_IN_VARIABLES = {
  ISSUER_CLIENTS: JSON.stringify([
    { issuer: ISSUER, id: 'gateway', secret: 'a'.repeat(40), signIn: { name: 'Example' } },
  ]),
}

/** Opens a session as the sign-in does after a login. Returns its cookie. */
export async function openSession(
  redis: TestRedis | RedisConnection,
  audience: string,
  { subject = 'olga', roles, tenant, name, host, ageSeconds = 0, idleForSeconds = 0 }: Person,
): Promise<string> {
  const rest = 'send' in redis ? redis : connectionOf(redis)
  const sessions = createSessions({
    store: createSessionStore(rest, Date.now),
    revocations: createRevocations(rest, Date.now),
    terms: { idleSeconds: 800, absoluteSeconds: 2_000, maxSessions: 10, roles: [] },
    audience,
    now: () => Date.now() - idleForSeconds * 1_000,
  })
  const nowSeconds = Math.floor(Date.now() / 1000)
  const principal = {
    ...{ issuer: ISSUER, tokenIssuer: ISSUER, subject, client: 'gateway', tenant, roles },
    ...{ session: undefined, scopes: [], tokenId: undefined, tokenIdHash: undefined },
    ...{ confirmation: undefined, issuedAtSeconds: nowSeconds, expiresAtSeconds: nowSeconds },
  }
  const login = {
    principal,
    tokens: { idToken: '', refreshToken: undefined },
    refreshAtSeconds: undefined,
    providerSubject: subject,
    providerSession: undefined,
    facts: { authTimeSeconds: nowSeconds - ageSeconds },
    name,
  }
  const reference = await sessions.open(login, { seal: createSeal('a secret') }, 'Firefox')
  if (host !== undefined) {
    const references = createReferenceStore(rest, Date.now)
    const hash = await credentialHash(reference)
    const record = await references.find(hash)
    if (record?.signIn === undefined) throw new Error('the session was not stored')
    await references.put(hash, { ...record, signIn: { ...record.signIn, host } })
  }
  return `${SESSION_COOKIE}=${reference}`
}
