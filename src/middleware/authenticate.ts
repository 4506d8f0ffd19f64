/** The `authenticate` stage: identifies the caller by one credential. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Principal, TokenVerifier } from '../access/principal.ts'
import {
  bearerText,
  type Credential,
  checkBinding,
  isReference,
  readCredential,
} from '../access/tokens/credential.ts'
import type { DpopVerifier } from '../access/tokens/dpop.ts'
import { credentialHash, type Reference } from '../access/tokens/reference.ts'
import type { References } from '../access/tokens/references.ts'
import { rejected } from '../access/tokens/rejection.ts'
import {
  type AcceptingSource,
  acceptedFrom,
  type TokenSources,
} from '../access/tokens/token-sources.ts'
import { Denied } from '../errors.ts'
import { writeHeaders } from '../http/response-headers.ts'
import { fieldsOf, makePrivate, varyBy } from '../http/shared-caches.ts'
import {
  type CredentialCheckVariables,
  type CredentialVariables,
  type PrincipalVariables,
  waitUntilOf,
} from './context.ts'
import { receivedHeaders } from './request-headers.ts'

export interface AuthenticateOptions {
  readonly verifier: TokenVerifier
  /** As for `createAdmission`. Accepts opaque tokens and API keys. Default: none. */
  readonly references?: References | undefined
  /** From `createDpopVerifier`. Accepts tokens bound to a key (RFC 9449). Default: refuses them. */
  readonly proofs?: DpopVerifier | undefined
  /** `required`: refuses tokens without a proof. Default `accepted`. */
  readonly dpop?: 'required' | 'accepted' | undefined
  /** Sends callers with a proof a nonce for the next one (RFC 9449 section 9). Default false. */
  readonly sendNonces?: boolean | undefined
  /** From `createTokenSources`. Default: credentials are read from `Authorization`. */
  readonly sources?: TokenSources | undefined
  /** The longest credential, in bytes. Default 16,384. */
  readonly maxTokenBytes?: number | undefined
  /** Admits callers without a credential. Default false. */
  readonly anonymous?: boolean
}

type Environment = {
  Variables: PrincipalVariables & CredentialVariables & Partial<CredentialCheckVariables>
}

/**
 * Verifies the credential of the request and sets `principal`: null for an anonymous caller. On an
 * anonymous route as well, a credential that is sent must be valid. Throws `Denied`
 * (`missing_token`, `token_rejected`, `invalid_dpop_proof`, `use_dpop_nonce`), and `Unavailable` if
 * the keys for the verification, or the issuer of an opaque token, are not available.
 *
 * The credential is in `Authorization`, or in one of `sources` (throws as `TokenSources.read` does).
 * Shared caches recognize responses to known callers by `Authorization` (RFC 9111 section 3.5).
 * Therefore the response to a credential of another source becomes private.
 *
 * An opaque token or an API key that this isolate has not cached is left to `admit`, which calls
 * Redis anyway and sets the principal. Until then, `callerOf` throws.
 *
 * Does NOT check revocation, nor whether a proof is a replay: `admit` does.
 *
 * @example
 * ```ts
 * const verifier = createTokenVerifier({ issuers: config.issuers })
 * app.get('/orders', authenticate({ verifier }), (c) => c.json(callerOf(c)?.subject))
 * ```
 */
export const authenticate = (options: AuthenticateOptions): MiddlewareHandler<Environment> => {
  const identify = createIdentification(options)
  const { sources } = options
  if (sources === undefined)
    return function authenticate(c, next) {
      return identify(c, receivedHeaders(c).get('authorization'), next)
    }

  const bySource = new Map<AcceptingSource, Identification>()
  function identificationFrom(source: AcceptingSource): Identification {
    let known = bySource.get(source)
    if (known === undefined) {
      known = createIdentification({ ...options, ...acceptedFrom(source, options) })
      bySource.set(source, known)
    }
    return known
  }

  return async function authenticate(c, next) {
    if (options.dpop === 'required') c.set('portcullis.usesDpop', true)
    const presented = sources.read(receivedHeaders(c), c.req.raw)
    if (presented === undefined) await identify(c, undefined, next)
    else await identificationFrom(presented.source)(c, presented.authorization, next)
    writeHeaders(c, (headers) => {
      const fields = fieldsOf(headers)
      if (presented?.source.isInAuthorization === false) makePrivate(fields)
      varyBy(fields, sources.vary)
    })
  }
}

const DPOP_SCHEME = /^dpop(?: |$)/i

/** Identifies the caller by the value of an `Authorization` header. */
type Identification = (
  c: Context<Environment>,
  authorization: string | undefined,
  next: Next,
) => Promise<void>

function createIdentification({
  verifier,
  references,
  proofs,
  dpop = 'accepted',
  sendNonces = false,
  maxTokenBytes,
  anonymous = false,
}: AuthenticateOptions): Identification {
  if (proofs === undefined && (dpop === 'required' || sendNonces))
    throw new TypeError('authenticate: `proofs` is required for dpop "required" and for sendNonces')
  const forms = {
    references: references !== undefined,
    dpop: proofs !== undefined,
    upstreamOf: verifier.opaqueIssuerOf,
    maxTokenBytes,
  }

  /** The cached principal of a bearer token that needs no proof. Most tokens are cached. */
  function known(header: string): Principal | undefined {
    const text = bearerText(header, maxTokenBytes)
    const principal = text === undefined ? undefined : verifier.recall(text)
    return principal?.confirmation === undefined ? principal : undefined
  }

  function recall(credential: Credential): Principal | undefined {
    const { text } = credential
    return isReference(credential) ? references?.recall(text) : verifier.recall(text)
  }

  async function check(c: Context<Environment>, authorization: string | undefined, next: Next) {
    if (dpop === 'required' || DPOP_SCHEME.test(authorization ?? ''))
      c.set('portcullis.usesDpop', true)
    if (authorization === undefined && dpop === 'required')
      throw new Denied({ code: 'missing_token', proof: true })
    const credential = readCredential(authorization, forms)
    let principal = recall(credential)
    const running = c.get('portcullis.credentialCheck')
    if (principal === undefined && (await running?.begin())) principal = recall(credential)
    if (principal === undefined && !isReference(credential))
      principal = await verifier.verify(credential.text, waitUntilOf(c))
    // Set for refused requests as well: the audit event names the caller, and the token is no guess.
    if (principal !== undefined) c.set('portcullis.principal', principal)
    if (dpop === 'required' && credential.scheme !== 'dpop')
      throw new Denied({ code: 'invalid_dpop_proof', check: 'required' })
    const { method, url } = c.req
    const header = receivedHeaders(c).get('dpop')
    const proof =
      credential.scheme === 'dpop'
        ? await proofs?.verify({ method, url, header, token: credential.text })
        : undefined
    if (principal !== undefined) {
      const failed = checkBinding(principal.confirmation, proof?.thumbprint)
      if (failed !== undefined) throw rejected(failed)
    }
    if (principal === undefined || proof !== undefined)
      c.set('portcullis.pending', {
        reference: principal === undefined ? await createReference(credential) : undefined,
        proof,
        check: running,
        identified: (resolved) => c.set('portcullis.principal', resolved),
      })
    else running?.passed()
    await next()
    if (sendNonces && proof !== undefined && proofs !== undefined) {
      const nonce = await proofs.nonce()
      writeHeaders(c, (headers) => headers.set('DPoP-Nonce', nonce))
    }
  }

  return function identify(c, header, next) {
    if (header === undefined && anonymous) {
      c.set('portcullis.principal', null)
      return next()
    }
    const principal = header === undefined || dpop === 'required' ? undefined : known(header)
    if (principal === undefined) return check(c, header, next)
    c.set('portcullis.principal', principal)
    return next()
  }
}

async function createReference(credential: Credential): Promise<Reference> {
  if (!isReference(credential)) throw new Error('authenticate: a token without a principal')
  const { kind, text } = credential
  return { kind, text, hash: await credentialHash(text) }
}
