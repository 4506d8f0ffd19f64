/** Decides what a new token may be, for every grant: its audiences, its scope and its end. */
import type { OAuthForm } from './form.ts'
import { grantedScope, type ScopeOfRoles } from './scope.ts'
import { grantedAudiences } from './target.ts'

/**
 * What a new token comes from: a session, a consent, another token, or the client itself. Nothing
 * that is issued is wider.
 */
export interface GrantBasis {
  /** Audiences of a token, session or consent of the gateway. Undefined: of another issuer, or none. */
  readonly audiences: readonly string[] | undefined
  /** The scopes that were granted. Undefined: only `roles` bound it. */
  readonly scopes: readonly string[] | undefined
  readonly roles: readonly string[]
}

/** What the client may get at most. Undefined: the basis was within it already. */
export interface ClientBounds {
  readonly audiences: readonly string[]
  readonly scopes?: readonly string[] | undefined
}

export interface GrantRules {
  /** The gateway's public URL. */
  readonly issuer: string
  readonly scopeOfRoles: ScopeOfRoles
  /** Reports whether a route of the policy is at a path or below it. */
  readonly isRoute: (path: string) => boolean
}

/**
 * Returns the audiences and the scope of a new token: what the request names, or all that the basis
 * and the client allow. No I/O. Throws `Denied`: `invalid_target` or `invalid_scope` for a request
 * beyond either. `form.one('scope')` is not read, because not every grant has that parameter.
 */
export function decideGrant(
  { issuer, scopeOfRoles, isRoute }: GrantRules,
  basis: GrantBasis,
  client: ClientBounds | undefined,
  { form, scope }: { readonly form: OAuthForm; readonly scope: string | undefined },
) {
  const { scopes: held, roles } = basis
  const bound = client === undefined ? held : client.scopes
  return {
    scopes: grantedScope(scope, { bound, held, roles, scopeOfRoles }),
    audiences: grantedAudiences(form, {
      issuer,
      permitted: client?.audiences,
      held: basis.audiences,
      isRoute,
    }),
  }
}

/**
 * Returns the end of everything that is issued for a token, in seconds since the epoch: the token's
 * own end. A session that starts with a login at another issuer may live longer, if the policy sets
 * its length: `sessionSeconds` from `startedAtSeconds`.
 */
export function endOfGrant(
  { expiresAtSeconds, isOwn }: { readonly expiresAtSeconds: number; readonly isOwn: boolean },
  startedAtSeconds: number | undefined,
  sessionSeconds: number | undefined,
): number {
  const endSeconds = Math.floor(expiresAtSeconds)
  if (startedAtSeconds === undefined || sessionSeconds === undefined) return endSeconds
  const sessionEndSeconds = startedAtSeconds + sessionSeconds
  return isOwn ? Math.min(endSeconds, sessionEndSeconds) : sessionEndSeconds
}
