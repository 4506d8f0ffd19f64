/** The `authenticate` stage: who is asking, told by one credential and by nothing else. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { CredentialVariables, PrincipalVariables } from '../context.ts'
import { Denied } from '../errors.ts'
import { receivedHeaders } from '../request-headers.ts'
import { writeHeaders } from '../response-headers.ts'
import { bearerText, type Credential, credentialOf, failedBindingOf } from '../tokens/credential.ts'
import type { DpopProof, DpopVerifier } from '../tokens/dpop.ts'
import type { Principal, TokenVerifier } from '../tokens/principal.ts'
import { credentialHash } from '../tokens/reference.ts'
import type { References } from '../tokens/references.ts'
import { rejected } from '../tokens/rejection.ts'
import { waitUntilOf } from './wait-until.ts'

export interface AuthenticateOptions {
  /** From `createTokenVerifier({ issuers })`. */
  readonly verifier: TokenVerifier
  /**
   * From `createReferences({ audience })`, the same that `createAdmission` gets: takes opaque tokens
   * and API keys as well. Default: JWTs only.
   */
  readonly references?: References | undefined
  /**
   * From `createDpopVerifier`: takes tokens that are bound to a key, with a proof by that key (RFC
   * 9449). Default: refuses them.
   */
  readonly proofs?: DpopVerifier | undefined
  /** Whether tokens without a proof are taken too. Default `accepted`: they are. */
  readonly dpop?: 'required' | 'accepted' | undefined
  /** Tells callers with a proof a nonce for the next one (RFC 9449 section 9). Default false. */
  readonly tellNonces?: boolean | undefined
  /** Lets callers without an `Authorization` header through. Default false. */
  readonly anonymous?: boolean
}

type Environment = { Variables: PrincipalVariables & CredentialVariables }

/**
 * Verifies the credential in the `Authorization` header and sets `principal`; null for a caller who
 * sent none, where `anonymous` allows that. A credential that is sent must be good, on an anonymous
 * route too: a caller who believes to be somebody must not be served as nobody. Throws `Denied`
 * (`token_missing`, `token_rejected`, `dpop_rejected`, `dpop_nonce_missing`) and `Unavailable` when
 * the keys to tell are out of reach.
 *
 * An opaque token or an API key that this isolate does not know is left to `admit`, which asks Redis
 * anyway and sets `principal` then; until it has, `callerOf` throws.
 *
 * Does NOT check revocation, nor that a proof is new: that is `admit`.
 *
 * @example
 * ```ts
 * const verifier = createTokenVerifier({ issuers: config.issuers })
 * app.get('/orders', authenticate({ verifier }), (c) => c.json(callerOf(c)?.subject))
 * ```
 *
 * @example With opaque tokens and API keys
 * ```ts
 * const references = createReferences({ audience: 'https://api.example' })
 * const admission = createAdmission({ store, references, now: Date.now })
 * app.use(authenticate({ verifier, references }), clientAddress(), admit({ admission }))
 * ```
 */
export const authenticate = ({
  verifier,
  references,
  proofs,
  dpop = 'accepted',
  tellNonces = false,
  anonymous = false,
}: AuthenticateOptions): MiddlewareHandler<Environment> => {
  if (proofs === undefined && (dpop === 'required' || tellNonces))
    throw new TypeError('authenticate: needs `proofs` to require DPoP or to tell nonces')
  const forms = { references: references !== undefined, dpop: proofs !== undefined }

  /** Most tokens have been seen before: one look into the cache tells that all of one is good. */
  function known(header: string): Principal | undefined {
    const text = bearerText(header)
    const principal = text === undefined ? undefined : verifier.recall(text)
    return principal?.confirmation === undefined ? principal : undefined
  }

  async function check(c: Context<Environment>, header: string | undefined, next: Next) {
    if (header === undefined && dpop === 'required')
      throw new Denied({ code: 'token_missing', proof: true })
    const credential = credentialOf(header, forms)
    if (dpop === 'required' && credential.scheme !== 'dpop')
      throw new Denied({ code: 'dpop_rejected', check: 'required' })
    const principal =
      credential.kind === 'jwt'
        ? await verifier.verify(credential.text, waitUntilOf(c))
        : references?.recall(credential.text)
    const proof = credential.scheme === 'dpop' ? await proofOf(c, proofs, credential) : undefined
    if (principal === undefined) await leaveToAdmit(c, credential, proof)
    else accept(c, principal, proof)
    await next()
    if (tellNonces && proof !== undefined && proofs !== undefined) {
      const nonce = await proofs.nonce()
      writeHeaders(c, (headers) => headers.set('DPoP-Nonce', nonce))
    }
  }

  return function authenticate(c, next) {
    const header = receivedHeaders(c).get('authorization')
    if (header === undefined && anonymous) {
      c.set('principal', null)
      return next()
    }
    const principal = header === undefined || dpop === 'required' ? undefined : known(header)
    if (principal === undefined) return check(c, header, next)
    c.set('principal', principal)
    return next()
  }
}

function accept(c: Context<Environment>, principal: Principal, proof: DpopProof | undefined): void {
  const failed = failedBindingOf(principal.confirmation, proof?.thumbprint)
  if (failed !== undefined) throw rejected(failed)
  c.set('principal', principal)
  if (proof !== undefined) c.set('pending', { reference: undefined, proof })
}

async function leaveToAdmit(
  c: Context<Environment>,
  { kind, text }: Credential,
  proof: DpopProof | undefined,
): Promise<void> {
  if (kind === 'jwt') throw new Error('authenticate: a JWT without a principal')
  c.set('pending', { reference: { kind, text, hash: await credentialHash(text) }, proof })
}

async function proofOf(
  c: Context,
  proofs: DpopVerifier | undefined,
  { text }: Credential,
): Promise<DpopProof | undefined> {
  const { method, url } = c.req
  return proofs?.verify({ method, url, header: receivedHeaders(c).get('dpop'), token: text })
}
