/** Verifies the ID tokens of a provider (OpenID Connect Core section 3.1.3.7). */

import type { Principal } from '../../access/principal.ts'
import { principalFrom } from '../../access/tokens/claims.ts'
import { issuerRules } from '../../access/tokens/issuer-rules.ts'
import { issuerFor } from '../../access/tokens/issuer-uses.ts'
import { readHeader, readOwnMember, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import type { KeySet } from '../../access/tokens/key-set.ts'
import { present } from '../../access/tokens/present.ts'
import { rejectedFor } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import { signInRefused } from './refused.ts'
import type { SignInSettings } from './schema.ts'

export interface IdToken {
  /** The claims of the token alone. */
  readonly payload: Payload
  /** With those that `findMore` has found. */
  readonly claims: Payload
  readonly principal: Principal
}

export interface IdTokenUse {
  /** The nonce of the login. Undefined: the session has not stored it. */
  readonly nonce?: string | undefined
  /** The token may lack the nonce, and must not have another one (OpenID Connect Core section 12.2). */
  readonly isRefreshed?: boolean
  readonly waitUntil?: WaitUntil | undefined
  /** Returns claims that the token may lack, for its `sub`. It is called for a valid token only. */
  readonly findMore?: ((subject: unknown) => Promise<Payload>) | undefined
}

type Payload = Readonly<Record<string, unknown>>

/**
 * Verifies an ID token. The rules of the issuer apply to its claims together with further ones. Throws
 * `Denied` (`sign_in_refused`), which names the check, and `Unavailable`.
 */
export type IdTokenVerifier = (text: string, use?: IdTokenUse) => Promise<IdToken>

interface IdTokenOptions {
  readonly config: IssuerConfig
  readonly keySet: KeySet
  readonly settings: SignInSettings
  /** The gateway at the provider. */
  readonly client: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export function createIdTokenVerifier({
  config,
  keySet,
  settings,
  client,
  now,
}: IdTokenOptions): IdTokenVerifier {
  const { issuer } = config
  const { require } = settings
  const demands = issuerFor(config, { use: 'id_token', client, require })
  const rules = issuerRules(demands)
  // What the token itself must state: UserInfo may have the claims that these settings name.
  const ownRules = issuerRules({ ...demands, subjectClaim: undefined, require: undefined })

  async function check(claims: Payload, by = rules): Promise<Principal> {
    const principal = await principalFrom(claims, by, { nowMs: now(), isOwn: false })
    if (new Set(principal.audiences).size > 1 && readOwnMember(claims, 'azp') !== client)
      throw signInRefused('id_token_azp')
    return principal
  }

  async function verified(
    text: string,
    { nonce, isRefreshed, waitUntil, findMore }: IdTokenUse,
  ): Promise<IdToken> {
    const header = readHeader(text)
    rules.checkAlgorithm(header)
    rules.checkType(header)
    await verifySignature(text, await keySet.find(header, waitUntil))
    const payload = readPayload(text)
    const iss = readOwnMember(payload, 'iss')
    if (iss !== issuer) throw rejectedFor('iss', iss, [issuer])
    const stated = present(payload, 'nonce')
    if (nonce !== undefined && stated !== nonce && !(isRefreshed && stated === undefined))
      throw signInRefused('id_token_nonce')
    let claims = payload
    if (findMore !== undefined) {
      await check(payload, ownRules)
      claims = withMore(payload, await findMore(readOwnMember(payload, 'sub')))
    }
    const principal = await check(claims)
    // Many providers name the client only in `aud`. A cutoff of the client must find its sessions.
    return { payload, claims, principal: { ...principal, client } }
  }

  return async function verifyIdToken(text, use = {}) {
    try {
      return await verified(text, use)
    } catch (error) {
      if (error instanceof Denied && error.denial.code === 'token_rejected')
        throw signInRefused(`id_token_${error.denial.check}`, { cause: error })
      throw error
    }
  }
}

/** Adds claims that the token lacks, or that it states as null or empty. Its own values always stay. */
const withMore = (payload: Payload, more: Payload): Payload => ({
  ...payload,
  ...Object.fromEntries(Object.entries(more).filter(([name]) => isLacking(payload, more, name))),
})

/**
 * A value and its `_verified` are one statement: `true` about one address must not verify another one.
 * If the token has one of them, it only gets the flag, and only for the same value.
 */
function isLacking(payload: Payload, more: Payload, name: string): boolean {
  const about = name.replace(/_verified$/, '')
  const own = present(payload, about)
  return (
    present(payload, name) === undefined &&
    (own === undefined
      ? present(payload, `${about}_verified`) === undefined
      : own === present(more, about))
  )
}
