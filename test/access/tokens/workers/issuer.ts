/** A Worker that opens sessions, refreshes them, and issues access tokens of each kind. */

import type { IssueOptions, TokenIssuer } from '../../../../src/access/tokens/access-grant.ts'
import { createReferenceStore } from '../../../../src/access/tokens/redis/references.ts'
import { createRefreshFamilies } from '../../../../src/access/tokens/redis/refresh-families.ts'
import {
  createRefreshTokens,
  type RefreshTokens,
} from '../../../../src/access/tokens/refresh-tokens.ts'
import { parseSigningKeys } from '../../../../src/access/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../../../src/access/tokens/token-issuer.ts'
import { createRedisRest } from '../../../../src/redis/rest.ts'

interface Env {
  readonly REST_URL: string
  readonly REST_TOKEN: string
  readonly SIGNING_KEYS: string
}

const ISSUER = 'https://gateway.test'
const KINDS: readonly IssueOptions[] = [
  { algorithm: 'ES256' },
  { algorithm: 'RS256' },
  { algorithm: 'EdDSA' },
  { algorithm: 'Ed25519' },
  { format: 'opaque' },
]
let services: { readonly issuer: TokenIssuer; readonly refreshTokens: RefreshTokens } | undefined

function servicesOf({ REST_URL, REST_TOKEN, SIGNING_KEYS }: Env) {
  const rest = createRedisRest({ url: REST_URL, token: REST_TOKEN, timeoutMs: 20_000 })
  return {
    issuer: createTokenIssuer({
      keys: parseSigningKeys(JSON.parse(SIGNING_KEYS)),
      issuer: ISSUER,
      references: createReferenceStore(rest),
      defaultTtlSeconds: 900,
    }),
    refreshTokens: createRefreshTokens({
      store: createRefreshFamilies(rest),
      issuer: ISSUER,
      graceSeconds: 10,
    }),
  }
}

function newSession() {
  const id = crypto.randomUUID()
  const nowSeconds = Math.floor(Date.now() / 1000)
  return {
    id,
    grant: {
      subject: 'alice',
      client: 'app',
      session: id,
      roles: ['reader'],
      scopes: ['a'],
      audiences: [ISSUER],
    },
    startedAtSeconds: nowSeconds,
    expiresAtSeconds: nowSeconds + 1_000,
  }
}

export default {
  /** A refresh token in the body is refreshed; without one, a session is opened. */
  async fetch(request: Request, env: Env): Promise<Response> {
    services ??= servicesOf(env)
    const { issuer, refreshTokens } = services
    const presented = await request.text()
    if (presented === '') return new Response(await refreshTokens.open(newSession()))
    const session = await refreshTokens.inspect(presented, 'app')
    const { refreshToken, ...rotation } = await refreshTokens.rotate(presented, session)
    const issued = await Promise.all(
      KINDS.map((kind) => issuer.issue(session.grant, { ...kind, ...rotation })),
    )
    return Response.json({ refreshToken, issued })
  },
}
