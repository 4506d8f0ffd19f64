/** Verifies the ID tokens of a provider (OpenID Connect Core section 3.1.3.7). */

import type { Principal, WaitUntil } from '../../access/principal.ts'
import { principalFrom } from '../../access/tokens/claims.ts'
import { issuerRules } from '../../access/tokens/issuer-rules.ts'
import { issuerFor } from '../../access/tokens/issuer-uses.ts'
import { readHeader, readOwnMember, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import type { KeySet } from '../../access/tokens/key-set.ts'
import { present } from '../../access/tokens/present.ts'
import { rejectedFor } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import { signInRefused } from './refused.ts'
import type { SignInSettings } from './schema.ts'

export interface IdToken {
  /** The claims of the token alone. */
  readonly payload: Payload
  readonly principal: Principal
}

export interface IdTokenUse {
  /** Undefined: the token is of a refresh and need not have one. */
  readonly nonce?: string | undefined
  readonly waitUntil?: WaitUntil | undefined
  /** Returns claims that the token may lack, for its verified `sub`. */
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
  const rules = issuerRules(issuerFor(config, { use: 'id_token', client, require }))

  async function verified(
    text: string,
    { nonce, waitUntil, findMore }: IdTokenUse,
  ): Promise<IdToken> {
    const header = readHeader(text)
    rules.checkAlgorithm(header)
    rules.checkType(header)
    await verifySignature(text, await keySet.find(header, waitUntil))
    const payload = readPayload(text)
    const iss = readOwnMember(payload, 'iss')
    if (iss !== issuer) throw rejectedFor('iss', iss, [issuer])
    if (nonce !== undefined && readOwnMember(payload, 'nonce') !== nonce)
      throw signInRefused('id_token_nonce')
    const more = await findMore?.(readOwnMember(payload, 'sub'))
    const claims = more === undefined ? payload : withMore(payload, more)
    const principal = await principalFrom(claims, rules, { nowMs: now(), isOwn: false })
    // Many providers name the client only in `aud`. A cutoff of the client must find its sessions.
    return { payload, principal: { ...principal, client } }
  }

  return async function verifyIdToken(text, use = {}) {
    try {
      const { payload, principal } = await verified(text, use)
      if ((principal.audiences?.length ?? 0) > 1 && readOwnMember(payload, 'azp') !== client)
        throw signInRefused('id_token_azp')
      return { payload, principal }
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
  ...Object.fromEntries(
    Object.entries(more).filter(([name]) => present(payload, name) === undefined),
  ),
})
