/** How long revocations must be stored. */
import { REVOCATION_MARGIN_SECONDS } from '../access/revocation/revocation.ts'
import type { Policy } from '../policy/policy.ts'
import { MAX_ACCESS_TOKEN_SECONDS } from '../validators/access-token.ts'
import type { Config } from '../validators/environment.ts'
import { listFeatures } from './feature.ts'

/** Returns the longest life of a token, and of a token or session, each with a margin. */
export function longestLifeSeconds(
  policy: Policy,
  { issuers }: Pick<Config, 'issuers'>,
): { readonly token: number; readonly access: number } {
  const token = Math.max(MAX_ACCESS_TOKEN_SECONDS, ...issuers.map(({ maxTokenAge }) => maxTokenAge))
  const sessions = listFeatures(policy).map(({ sessionSeconds = 0 }) => sessionSeconds)
  return {
    token: token + REVOCATION_MARGIN_SECONDS,
    access:
      Math.max(token, policy.tokens.sessionSeconds ?? 0, ...sessions) + REVOCATION_MARGIN_SECONDS,
  }
}
