/** Verifies the ID tokens of a provider (OpenID Connect Core section 3.1.3.7). */
import { Denied } from '../errors.ts'
import type { Principal, WaitUntil } from '../identity/principal.ts'
import { PRESETS } from '../identity-providers/presets.ts'
import { principalFrom } from '../tokens/claims.ts'
import { issuerRules, KIND_CLAIMS } from '../tokens/issuer-rules.ts'
import { own, readHeader, readPayload, verifySignature } from '../tokens/jws.ts'
import type { KeySet } from '../tokens/key-set.ts'
import { rejectedFor } from '../tokens/rejection.ts'
import { type IssuerConfig, NO_TYPE } from '../validators/issuer.ts'
import type { SignInSettings } from '../validators/sign-in.ts'
import { signInRefused } from './refused.ts'

/** Types of ID tokens. Most providers set one of these. */
const ID_TOKEN_TYPES = ['JWT', NO_TYPE]
/** An ID token is used once, so its life does not matter. */
const ANY_AGE_SECONDS = Number.MAX_SAFE_INTEGER

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
  const rules = issuerRules(idTokenRules(config, client, settings))

  async function verified(text: string, waitUntil: WaitUntil | undefined): Promise<IdToken> {
    const header = readHeader(text)
    rules.checkHeader(header)
    await verifySignature(text, await keySet.find(header, waitUntil))
    const payload = readPayload(text)
    const iss = own(payload, 'iss')
    if (iss !== issuer) throw rejectedFor('iss', iss, [issuer])
    const principal = await principalFrom(payload, rules, { nowMs: now(), isOwn: false })
    // Many providers name the client only in `aud`. A cutoff of the client must find its sessions.
    return { payload, principal: { ...principal, client } }
  }

  return async function verifyIdToken(text, nonce, waitUntil) {
    try {
      const { payload, principal } = await verified(text, waitUntil)
      if (nonce !== undefined && own(payload, 'nonce') !== nonce)
        throw signInRefused('id_token_nonce')
      if ((principal.audiences?.length ?? 0) > 1 && own(payload, 'azp') !== client)
        throw signInRefused('id_token_azp')
      return { payload, principal }
    } catch (error) {
      if (error instanceof Denied && error.denial.code === 'token_rejected')
        throw signInRefused(`id_token_${error.denial.check}`, { cause: error })
      throw error
    }
  }
}

/**
 * Returns the rules for the ID tokens of an issuer: its rules for access tokens with the gateway as
 * the audience. Rules about the kind of the token do not apply; those about the user do.
 */
function idTokenRules(config: IssuerConfig, id: string, settings: SignInSettings): IssuerConfig {
  const require = Object.entries(config.require ?? {}).filter(
    ([name, value]) => !KIND_CLAIMS.includes(name) && !isOfAccessTokens(name, value),
  )
  return {
    ...config,
    audience: id,
    audienceClaim: undefined,
    typ: ID_TOKEN_TYPES,
    tokenUse: 'id',
    clients: undefined,
    refuse: ['events'],
    require: settings.require ?? Object.fromEntries(require),
    maxTokenAge: ANY_AGE_SECONDS,
  }
}

/** Presets with a rule on a claim that ID tokens do not have, or have with another value. */
const ACCESS_TOKEN_RULES: readonly Readonly<Record<string, string>>[] = [
  PRESETS.authentik.require,
  PRESETS.fusionauth.require,
  PRESETS.okta.require,
  PRESETS.zitadel.require,
]

const isOfAccessTokens = (name: string, value: unknown): boolean =>
  ACCESS_TOKEN_RULES.some((rules) => Object.hasOwn(rules, name) && rules[name] === value)
