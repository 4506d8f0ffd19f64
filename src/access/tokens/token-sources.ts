/** Reads the credential of a request from the sources that the configuration names. */
import { Denied } from '../../errors.ts'
import type { Check } from '../../problems/checks.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import {
  DEFAULT_TOKEN_SOURCES,
  isAuthorization,
  type TokenSource,
} from '../../validators/token-source.ts'
import type { Principal, TokenVerifier } from '../principal.ts'
import type { References } from './references.ts'
import {
  createCookieReader,
  type Received,
  type RequestLine,
  refuseCrossOrigin,
} from './token-cookie.ts'

/** A source, and the tokens that are accepted from it. */
export interface AcceptingSource {
  readonly isInAuthorization: boolean
  /** `iss` of the tokens. */
  readonly issuers: ReadonlySet<string>
  /** Whether the gateway's opaque tokens and API keys are accepted. */
  readonly acceptsReferences: boolean
}

/** A credential of a request. Nothing of it has been verified. */
export interface PresentedCredential {
  /** The credential as the value of an `Authorization` header, whatever its source is. */
  readonly authorization: string
  readonly source: AcceptingSource
}

/** The sources of all issuers, each once. */
export interface TokenSources {
  readonly all: readonly TokenSource[]
  readonly isAuthorizationRead: boolean
  /** Lower-case names of the other headers. */
  readonly headers: readonly string[]
  /** Names of cookies with tokens, also of those that a proxy has read. */
  readonly cookies: readonly string[]
  /** Names of the request headers with a source. */
  readonly vary: readonly string[]
  /**
   * Returns the credential of a request. Does NOT read headers and cookies that are no source. Throws
   * `Denied`:
   *
   * - `ambiguous_credentials` for more than one credential (RFC 6750 section 3.1). A repeated
   *   `Authorization` is left to `readCredential`, which refuses it.
   * - `cross_origin_request` for a cookie that a page of another origin may have sent.
   */
  read(received: Received, request: RequestLine): PresentedCredential | undefined
  /** Reports whether a source has a credential. Throws `Denied` (`ambiguous_credentials`). */
  isPresent(received: Received): boolean
}

export interface TokenSourcesOptions {
  readonly issuers: readonly Pick<IssuerConfig, 'issuer' | 'tokenSources'>[]
  /** The gateway, for its own tokens. Default: it has none. */
  readonly own?:
    | { readonly publicUrl: string; readonly sources?: readonly TokenSource[] | undefined }
    | undefined
}

interface Place extends AcceptingSource {
  /** At least one. They differ in what they say about pages. */
  readonly sources: TokenSource[]
  readonly issuers: Set<string>
  acceptsReferences: boolean
}

/**
 * Prepares the sources of all issuers, once for each isolate. Returns undefined if every token is
 * read from `Authorization`.
 *
 * If several issuers name one cookie, pages of another origin may send it only if each of them
 * lists that origin.
 */
export function createTokenSources({
  issuers,
  own,
}: TokenSourcesOptions): TokenSources | undefined {
  const places = new Map<string, Place>()
  const all: TokenSource[] = []

  function locateSource(source: TokenSource): Place {
    const key = 'header' in source ? source.header.toLowerCase() : `cookie ${source.cookie}`
    let place = places.get(key)
    if (place === undefined) {
      const isInAuthorization = isAuthorization(source)
      place = { sources: [], isInAuthorization, issuers: new Set(), acceptsReferences: false }
      places.set(key, place)
      all.push(source)
    }
    place.sources.push(source)
    return place
  }

  const ofGateway = own?.sources ?? DEFAULT_TOKEN_SOURCES
  if (own !== undefined)
    for (const source of ofGateway) locateSource(source).acceptsReferences = true
  for (const { issuer, tokenSources } of issuers) {
    const byDefault = issuer === own?.publicUrl ? ofGateway : DEFAULT_TOKEN_SOURCES
    for (const source of tokenSources ?? byDefault) locateSource(source).issuers.add(issuer)
  }

  const cookies = [...places.values()].flatMap(({ sources }) => sources.flatMap(cookieOf))
  if (all.every(isAuthorization) && cookies.length === 0) return undefined
  const ownOrigin = own && new URL(own.publicUrl).origin
  const readers = [...places.values()].map((place) => createReader(place, ownOrigin))
  return {
    all,
    isAuthorizationRead: all.some(isAuthorization),
    headers: all.flatMap((source) =>
      'header' in source && !isAuthorization(source) ? [source.header.toLowerCase()] : [],
    ),
    cookies,
    vary: [...new Set(all.map((source) => ('header' in source ? source.header : 'Cookie')))],
    isPresent: (received) => readers.some(({ find }) => find(received) !== undefined),
    read(received, request) {
      const found = readers.flatMap(({ find, refusePages, place }) => {
        const authorization = find(received)
        return authorization === undefined ? [] : [{ authorization, source: place, refusePages }]
      })
      if (found.length > 1) throw ambiguous('sources')
      const [credential] = found
      credential?.refusePages(received, request)
      return credential
    },
  }
}

interface Reader {
  readonly place: Place
  /** Returns the credential as the value of an `Authorization` header. */
  find(received: Received): string | undefined
  /** Throws `Denied` (`cross_origin_request`) if a page may have sent a cookie that it must not. */
  refusePages(received: Received, request: RequestLine): void
}

function createReader(place: Place, ownOrigin: string | undefined): Reader {
  const { sources } = place
  const [source] = sources as [TokenSource]
  const find = createFinder(source)
  if (sources.flatMap(cookieOf).length === 0) return { place, find, refusePages() {} }
  const [first = [], ...rest] = sources.map((one) => one.origins ?? [])
  const others = first.filter((origin) => rest.every((origins) => origins.includes(origin)))
  const pages = { ownOrigin, others, acceptsOtherClients: 'header' in source }
  return {
    place,
    find,
    refusePages: (received, request) => refuseCrossOrigin(received, request, pages),
  }
}

/** Returns the name of the cookie that contains the token. */
function cookieOf(source: TokenSource): readonly string[] {
  const name = 'cookie' in source ? source.cookie : source.fromCookie
  return name === undefined ? [] : [name]
}

/** Returns the parts of `authenticate` that accept only credentials of issuers that list the source. */
export function acceptedFrom(
  { issuers, acceptsReferences }: AcceptingSource,
  { verifier, references }: CredentialParts,
): CredentialParts {
  function accepted(principal: Principal): Principal {
    const { tokenIssuer, subject } = principal
    if (issuers.has(tokenIssuer)) return principal
    const signer = { issuer: tokenIssuer, subject }
    throw new Denied({ code: 'token_rejected', check: 'source', signer })
  }
  const { opaqueIssuerOf } = verifier
  return {
    verifier: {
      ...verifier,
      // A token is not sent to an issuer that does not list the source.
      opaqueIssuerOf(text) {
        const issuer = opaqueIssuerOf?.(text)
        return issuer !== undefined && issuers.has(issuer) ? issuer : undefined
      },
      recall(token) {
        const principal = verifier.recall(token)
        return principal && accepted(principal)
      },
      verify: async (token, waitUntil) => accepted(await verifier.verify(token, waitUntil)),
    },
    references: acceptsReferences ? references : undefined,
  }
}

interface CredentialParts {
  readonly verifier: TokenVerifier
  readonly references?: References | undefined
}

function createFinder(source: TokenSource): Reader['find'] {
  if ('cookie' in source) return asBearer(createCookieReader(source.cookie))
  const name = source.header.toLowerCase()
  if (isAuthorization(source)) return (received) => received.get(name)
  return asBearer((received) => {
    const value = received.get(name)
    // Fields of one name are joined by commas, which no credential contains.
    if (value?.includes(',')) throw ambiguous('header')
    return value
  })
}

const asBearer = (find: Reader['find']) => (received: Received) => {
  const text = find(received)
  return text === undefined ? undefined : `Bearer ${text}`
}

const ambiguous = (check: Check<'ambiguous_credentials'>) =>
  new Denied({ code: 'ambiguous_credentials', check })
