/** Verifies the ID tokens of a provider (OpenID Connect Core section 3.1.3.7). */

import type { Principal, WaitUntil } from '../../access/principal.ts'
import { principalFrom } from '../../access/tokens/claims.ts'
import { issuerRules } from '../../access/tokens/issuer-rules.ts'
import { issuerFor } from '../../access/tokens/issuer-uses.ts'
import { readHeader, readOwnMember, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import type { KeySet } from '../../access/tokens/key-set.ts'
import { rejectedFor } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import { signInRefused } from './refused.ts'
import type { SignInSettings } from './schema.ts'

export interface IdToken {
  readonly payload: Readonly<Record<string, unknown>>
  readonly principal: Principal
}

/**
 * Verifies an ID token. Throws `Denied` (`sign_in_refused`), which names the check, and `Unavailable`.
 * Without `nonce`, the token is of a refresh and need not have one.
 */
export type IdTokenVerifier = (
  text: string,
  nonce?: string,
  waitUntil?: WaitUntil,
) => Promise<IdToken>

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

  async function verified(text: string, waitUntil: WaitUntil | undefined): Promise<IdToken> {
    const header = readHeader(text)
    rules.checkAlgorithm(header)
    rules.checkType(header)
    await verifySignature(text, await keySet.find(header, waitUntil))
    const payload = readPayload(text)
    const iss = readOwnMember(payload, 'iss')
    if (iss !== issuer) throw rejectedFor('iss', iss, [issuer])
    const principal = await principalFrom(payload, rules, { nowMs: now(), isOwn: false })
    // Many providers name the client only in `aud`. A cutoff of the client must find its sessions.
    return { payload, principal: { ...principal, client } }
  }

  return async function verifyIdToken(text, nonce, waitUntil) {
    try {
      const { payload, principal } = await verified(text, waitUntil)
      if (nonce !== undefined && readOwnMember(payload, 'nonce') !== nonce)
        throw signInRefused('id_token_nonce')
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
