/** Revokes tokens from a handler. */
import type { Principal } from '../access/principal.ts'
import {
  REVOCATION_MARGIN_SECONDS,
  type Revocations,
  type RevokedBeforeKind,
} from '../access/revocation/revocation.ts'
import { tokenIdHash } from '../access/token-id.ts'
import type { IssuerConfig } from '../validators/issuer.ts'

interface OfIssuer {
  /** Default: the trusted issuer if there is only one, else the caller's. */
  readonly issuer?: string
}

/** One token, or all tokens that were issued until now to one of these. */
export type RevocationTarget = OfIssuer &
  (
    | { readonly jti: string }
    | { readonly subject: string }
    | { readonly session: string }
    | { readonly client: string }
    | { readonly tenant: string }
  )

export type Revoke = (
  caller: Principal | null,
  target: RevocationTarget | undefined,
) => Promise<void>

interface RevokeParts {
  readonly issuers: readonly IssuerConfig[]
  readonly revocations: Revocations
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const KINDS: readonly RevokedBeforeKind[] = ['subject', 'session', 'client', 'tenant']

export function createRevoke({ issuers, revocations, now }: RevokeParts): Revoke {
  /** Returns how long the tokens of an issuer are accepted, in seconds. */
  function findLongestLife(name: string): number {
    const config = issuers.find(({ issuer }) => issuer === name)
    if (config === undefined) throw new TypeError(`guard.revoke: "${name}" is not a trusted issuer`)
    return config.maxTokenAge + REVOCATION_MARGIN_SECONDS
  }

  async function revokeOwn(caller: Principal): Promise<void> {
    const { tokenIdHash: hash, expiresAtSeconds, issuer, subject: value } = caller
    const nowSeconds = now() / 1000
    if (hash === undefined) {
      const ttlSeconds = findLongestLife(caller.tokenIssuer)
      const cutoff = { kind: 'subject', issuer, value, atSeconds: nowSeconds, ttlSeconds } as const
      return revocations.revokeBefore(cutoff)
    }
    const untilSeconds = expiresAtSeconds + REVOCATION_MARGIN_SECONDS
    return revocations.revokeToken({ tokenIdHash: hash, untilSeconds })
  }

  return async function revoke(caller, target) {
    if (target === undefined) {
      if (caller === null) throw new TypeError('guard.revoke: an anonymous caller has no token')
      return revokeOwn(caller)
    }
    const [only] = issuers
    const issuer = target.issuer ?? (issuers.length === 1 ? only?.issuer : caller?.tokenIssuer)
    if (issuer === undefined) throw new TypeError('guard.revoke: the target needs an issuer')
    const ttlSeconds = findLongestLife(issuer)
    const nowSeconds = now() / 1000
    if ('jti' in target) {
      const hash = await tokenIdHash(issuer, target.jti)
      const untilSeconds = nowSeconds + ttlSeconds
      return revocations.revokeToken({ tokenIdHash: hash, untilSeconds })
    }
    const values = target as Readonly<Partial<Record<RevokedBeforeKind, string>>>
    const kind = KINDS.find((name) => values[name] !== undefined)
    const value = kind && values[kind]
    if (kind === undefined || value === undefined)
      throw new TypeError('guard.revoke: the target needs jti, subject, session, client or tenant')
    return revocations.revokeBefore({ kind, issuer, value, atSeconds: nowSeconds, ttlSeconds })
  }
}
