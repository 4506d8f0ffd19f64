/** Browser sessions of the benchmark. They are stored without a login, because the provider does not exist. */

import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { DEFAULT_TERMS } from '../../src/features/sign-in/definition.ts'
import { createSessionStore } from '../../src/features/sign-in/redis/session-store.ts'
import { createSeal } from '../../src/features/sign-in/seal.ts'
import { createSessions } from '../../src/features/sign-in/sessions.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import type { Backends } from './backends.ts'
import { PUBLIC_URL } from './credentials.ts'

const PROVIDER = 'https://login.bench.test'
const CLIENT = { issuer: PROVIDER, id: 'gateway', secret: 'a secret of the benchmark' }
/** The loads last for a minute, so the gateway renews no session in them. */
const TERMS = DEFAULT_TERMS

/** Variables of a gateway whose policy has `signIn()`. */
export const SIGN_IN_VARIABLES: Readonly<Record<string, string>> = {
  ISSUERS: JSON.stringify([{ issuer: PROVIDER, audience: PUBLIC_URL }]),
  ISSUER_CLIENTS: JSON.stringify([{ ...CLIENT, signIn: { name: 'Bench' } }]),
}

/** Stores a session for each subject. Returns their references. */
export async function openSessions(
  { redis }: Pick<Backends, 'redis'>,
  subjects: readonly string[],
  roles: readonly string[],
): Promise<readonly string[]> {
  const connection = createRedisRest(redis)
  const sessions = createSessions({
    store: createSessionStore(connection, Date.now),
    revocations: createRevocations(connection, Date.now),
    terms: TERMS,
    audience: PUBLIC_URL,
    now: Date.now,
  })
  const provider = { seal: createSeal(CLIENT.secret) }
  const authenticatedAtSeconds = Math.floor(Date.now() / 1000)
  const opened: string[] = []
  for (const subject of subjects) {
    const principal = {
      issuer: PROVIDER,
      tokenIssuer: PROVIDER,
      subject,
      client: CLIENT.id,
      tenant: undefined,
      session: undefined,
      roles,
      scopes: [],
      tokenId: undefined,
      tokenIdHash: undefined,
      confirmation: undefined,
      issuedAtSeconds: authenticatedAtSeconds,
      expiresAtSeconds: authenticatedAtSeconds + TERMS.absoluteSeconds,
    }
    const login = {
      principal,
      tokens: { idToken: 'x.y.z' },
      refreshAtSeconds: undefined,
      providerSubject: subject,
      providerSession: `of ${subject}`,
      acr: 'pwd',
      authTimeSeconds: authenticatedAtSeconds,
    }
    opened.push(await sessions.open(login, provider, 'portcullis-bench'))
  }
  return opened
}
