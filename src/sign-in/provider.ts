/** An OpenID Provider: the gateway as its client, through `oauth4webapi`. */
import * as oauth from 'oauth4webapi'
import { Denied, Unavailable } from '../errors.ts'
import type { Principal, WaitUntil } from '../identity/principal.ts'
import { PRESETS } from '../identity-providers/presets.ts'
import { authenticationOf } from '../introspection/client-authentication.ts'
import { createSharedReading } from '../isolate/shared-reading.ts'
import { principalFrom } from '../tokens/claims.ts'
import { isAcceptable } from '../tokens/discovery.ts'
import { issuerRules, KIND_CLAIMS } from '../tokens/issuer-rules.ts'
import { own, readHeader, readPayload, verifySignature } from '../tokens/jws.ts'
import { rejected } from '../tokens/rejection.ts'
import type { RemoteKeySetOptions } from '../tokens/remote-key-set.ts'
import { keySetOf } from '../tokens/verifier.ts'
import { type IssuerConfig, mediaType, NO_TYPE } from '../validators/issuer.ts'
import type { IssuerClient } from '../validators/issuer-client.ts'
import type { SignInSettings } from '../validators/sign-in.ts'
import { type LogoutToken, logoutIn } from './logout-token.ts'
import { boundedFetch, failureOf, unavailable } from './provider-call.ts'
import { signInRefused } from './refused.ts'
import type { SignInDemand } from './return-path.ts'
import { createSeal, type Seal } from './seal.ts'

/** The tokens that a session keeps, encrypted. */
export interface ProviderTokens {
  /** Identifies the user at a sign-out at the provider. */
  readonly idToken: string
  readonly refreshToken?: string | undefined
}

/** What the provider answers to a refresh. */
export interface Refreshed {
  readonly tokens: ProviderTokens
  readonly refreshAtSeconds: number
  /**
   * Verifies the new ID token. Undefined: the provider sent none. Throws as `complete`. Keep the tokens
   * before: the provider may accept each refresh token once.
   */
  principal(): Promise<Principal | undefined>
}

/** A verified login. */
export interface Login {
  /** From the ID token. `tokenId` and the times are those of the ID token. */
  readonly principal: Principal
  readonly tokens: ProviderTokens
  /** When the tokens should be refreshed, in seconds since the epoch. Undefined: they cannot be. */
  readonly refreshAtSeconds: number | undefined
  /** `sub`. */
  readonly providerSubject: string
  /** `sid`. */
  readonly providerSession: string | undefined
  readonly acr: string | undefined
  readonly authenticatedAtSeconds: number
}

export interface LoginSecrets {
  readonly state: string
  readonly nonce: string
  /** Of PKCE (RFC 7636). */
  readonly verifier: string
}

export interface AuthorizationRequest extends LoginSecrets, Omit<SignInDemand, 'returnPath'> {}

export type ExpectedLogin = Omit<AuthorizationRequest, 'prompt'>

export interface Provider {
  readonly issuer: string
  /** For the page on which the user chooses. */
  readonly name: string
  /** Throws `Unavailable` if the provider does not respond. */
  authorizationUrl(request: AuthorizationRequest): Promise<URL>
  /**
   * Exchanges the code of an authorization response and verifies the ID token. Throws `Denied`
   * (`sign_in_refused`) and `Unavailable`.
   */
  complete(
    response: URLSearchParams,
    expected: ExpectedLogin,
    waitUntil?: WaitUntil,
  ): Promise<Login>
  /**
   * Refreshes the tokens of a session. Undefined: the provider has ended the session. Throws
   * `Unavailable` if that is not known.
   */
  refresh(tokens: ProviderTokens): Promise<Refreshed | undefined>
  /** Returns where a browser signs out at the provider. Undefined: nowhere, or not at the moment. */
  signOutUrl(idToken: string | undefined): Promise<URL | undefined>
  /** Verifies a logout token. Throws `Denied` (`sign_in_refused`) and `Unavailable`. */
  logoutToken(text: string, waitUntil?: WaitUntil): Promise<LogoutToken>
  /** Encrypts the tokens of sessions. */
  readonly seal: Seal
}

export interface ProviderOptions {
  readonly client: IssuerClient
  readonly settings: SignInSettings
  readonly issuer: IssuerConfig
  /** The gateway's callback. */
  readonly redirectUri: string
  /** Where the browser returns after it has signed out at the provider. */
  readonly signedOutUri: string
  readonly watch?: RemoteKeySetOptions['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Of one call to the provider. */
const CALL_TIMEOUT_MS = 5_000
/** A longer reading counts as dead. */
const LEASE_MS = CALL_TIMEOUT_MS + 1_000
/** A login begins only at a provider that responded in this time, and fails fast otherwise. */
const METADATA_MS = 5_000
/** Types of ID tokens. Most providers set one of these. */
const ID_TOKEN_TYPES = ['JWT', NO_TYPE]
/** An ID token is used once, so its life does not matter. */
const ANY_AGE_SECONDS = Number.MAX_SAFE_INTEGER
/** Refreshed when this part of the access token's life has passed. */
const REFRESHED_AT = 0.9
/** For a provider that does not state how long an access token lives. */
const DEFAULT_REFRESH_SECONDS = 600
/** Section 2.4 of Back-Channel Logout recommends the first; many providers use the second or none. */
const LOGOUT_TOKEN_TYPES = ['logout+jwt', 'jwt']

export function createProvider({
  client: credentials,
  settings,
  issuer: config,
  redirectUri,
  signedOutUri,
  watch,
  now,
}: ProviderOptions): Provider {
  const { issuer } = config
  const issuerUrl = new URL(issuer)
  const rules = issuerRules(idTokenRules(config, credentials.id, settings))
  const keySet = keySetOf(config, now, { watch })
  const client: oauth.Client = {
    client_id: credentials.id,
    [oauth.clockTolerance]: config.clockTolerance,
  }
  const authentication: oauth.ClientAuth = async (_as, _client, body, headers) => {
    const { headers: fields, form } = await authenticationOf(credentials, now())
    for (const [name, value] of Object.entries(form)) body.set(name, value)
    for (const [name, value] of Object.entries(fields)) headers.set(name, value)
  }

  const options = () => ({
    [oauth.customFetch]: boundedFetch,
    // Only for a provider on this machine, in development: `privateUrl` has checked the issuer.
    [oauth.allowInsecureRequests]: issuerUrl.protocol === 'http:',
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  })

  let known: oauth.AuthorizationServer | undefined

  async function discover(): Promise<oauth.AuthorizationServer> {
    try {
      const response = await oauth.discoveryRequest(issuerUrl, options())
      const found = await oauth.processDiscoveryResponse(issuerUrl, response)
      for (const url of [found.authorization_endpoint, found.token_endpoint])
        if (url === undefined || !isAcceptable(url, issuer))
          throw new Unavailable('identity_provider', 'malformed')
      // The library also accepts another spelling of the URL, and tokens would have that one.
      if (found.issuer !== issuer) throw new Unavailable('identity_provider', 'malformed')
      known = found
      return found
    } catch (error) {
      throw unavailable(error)
    }
  }
  const metadata = createSharedReading<void, oauth.AuthorizationServer>({
    read: discover,
    now,
    memoryMs: METADATA_MS,
    leaseMs: LEASE_MS,
  })

  /** Returns the last metadata. A failure to read it again does not end a login or a refresh. */
  const knownMetadata = async () => known ?? (await metadata())

  async function verifiedIdToken(text: string, waitUntil?: WaitUntil) {
    try {
      const header = readHeader(text)
      rules.checkHeader(header)
      await verifySignature(text, await keySet.find(header, waitUntil))
      const payload = readPayload(text)
      const principal = await principalFrom(payload, rules, { nowMs: now(), isOwn: false })
      // Many providers name the client only in `aud`. A cutoff of the client must find its sessions.
      return { payload, principal: { ...principal, client: credentials.id } }
    } catch (error) {
      if (error instanceof Denied && 'check' in error.denial)
        throw signInRefused(`id_token_${error.denial.check}`, { cause: error })
      throw error
    }
  }

  /** Returns the second in which tokens should be refreshed, before the access token expires. */
  function refreshTimeOf({ expires_in: seconds }: oauth.TokenEndpointResponse): number {
    const life = seconds === undefined ? DEFAULT_REFRESH_SECONDS : seconds * REFRESHED_AT
    return Math.floor(now() / 1000 + Math.max(1, life))
  }

  return {
    issuer,
    name: settings.name,
    seal: createSeal('key' in credentials ? JSON.stringify(credentials.key) : credentials.secret),

    async authorizationUrl({ state, nonce, verifier, prompt, maxAgeSeconds, acr }) {
      const { authorization_endpoint: endpoint = '' } = await metadata()
      const url = new URL(endpoint)
      const parameters = {
        response_type: 'code',
        client_id: credentials.id,
        redirect_uri: redirectUri,
        scope: settings.scope,
        state,
        nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        prompt,
        max_age: maxAgeSeconds === undefined ? undefined : String(maxAgeSeconds),
        acr_values: acr?.join(' '),
      }
      // Those of the sign-in come last, so that they replace the others.
      for (const [name, value] of [settings.parameters ?? {}, parameters].flatMap(Object.entries))
        if (value !== undefined) url.searchParams.set(name, value)
      return url
    },

    async complete(response, { state, nonce, verifier, maxAgeSeconds, acr }, waitUntil) {
      const as = await knownMetadata()
      let tokens: oauth.TokenEndpointResponse
      try {
        const parameters = oauth.validateAuthResponse(as, client, response, state)
        const answer = await oauth.authorizationCodeGrantRequest(
          as,
          client,
          authentication,
          parameters,
          redirectUri,
          verifier,
          options(),
        )
        tokens = await oauth.processAuthorizationCodeResponse(as, client, answer, {
          expectedNonce: nonce,
          maxAge: maxAgeSeconds ?? oauth.skipAuthTimeCheck,
          requireIdToken: true,
        })
      } catch (error) {
        throw failureOf(error, issuer)
      }
      const idToken = tokens.id_token ?? ''
      const { payload, principal } = await verifiedIdToken(idToken, waitUntil)
      const login: Login = {
        principal,
        tokens: { idToken, refreshToken: tokens.refresh_token },
        refreshAtSeconds: tokens.refresh_token === undefined ? undefined : refreshTimeOf(tokens),
        providerSubject: textIn(payload, 'sub') ?? '',
        // A logout token names `sid`, whatever claim the issuer is configured with.
        providerSession: textIn(payload, 'sid') ?? principal.session,
        acr: textIn(payload, 'acr'),
        authenticatedAtSeconds: timeIn(payload, 'auth_time') ?? principal.issuedAtSeconds,
      }
      // Otherwise the browser would be sent to the provider again and again.
      if (acr !== undefined && (login.acr === undefined || !acr.includes(login.acr)))
        throw signInRefused('acr')
      return login
    },

    async refresh({ idToken, refreshToken = '' }) {
      const as = await knownMetadata()
      let tokens: oauth.TokenEndpointResponse
      try {
        const answer = await oauth.refreshTokenGrantRequest(
          as,
          client,
          authentication,
          refreshToken,
          options(),
        )
        tokens = await oauth.processRefreshTokenResponse(as, client, answer)
      } catch (error) {
        if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant')
          return undefined
        const failure = failureOf(error, issuer)
        throw failure instanceof Unavailable ? failure : unavailable(error)
      }
      const fresh = tokens.id_token
      return {
        tokens: {
          idToken: fresh ?? idToken,
          refreshToken: tokens.refresh_token ?? refreshToken,
        },
        refreshAtSeconds: refreshTimeOf(tokens),
        principal: async () =>
          fresh === undefined ? undefined : (await verifiedIdToken(fresh)).principal,
      }
    },

    async signOutUrl(idToken) {
      if (settings.signOut !== undefined) {
        const { url: endpoint, returnTo } = settings.signOut
        const url = new URL(endpoint)
        url.searchParams.set('client_id', credentials.id)
        url.searchParams.set(returnTo, signedOutUri)
        return url
      }
      const as = await metadata().catch(withoutProvider)
      const endpoint = as?.end_session_endpoint
      if (endpoint === undefined || !isAcceptable(endpoint, issuer)) return undefined
      const url = new URL(endpoint)
      url.searchParams.set('client_id', credentials.id)
      url.searchParams.set('post_logout_redirect_uri', signedOutUri)
      if (idToken !== undefined) url.searchParams.set('id_token_hint', idToken)
      return url
    },

    async logoutToken(text, waitUntil) {
      try {
        const header = readHeader(text)
        if (!config.algorithms.some((algorithm) => algorithm === header.alg)) throw rejected('alg')
        if (header.typ !== undefined && !LOGOUT_TOKEN_TYPES.includes(mediaType(header.typ)))
          throw rejected('typ')
        await verifySignature(text, await keySet.find(header, waitUntil))
        return logoutIn(readPayload(text), { ...config, audience: credentials.id }, now() / 1000)
      } catch (error) {
        if (error instanceof Denied && error.denial.code === 'token_rejected')
          throw signInRefused(`logout_token_${error.denial.check}`, { cause: error })
        throw error
      }
    },
  }
}

function withoutProvider(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error
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

const textIn = (payload: Readonly<Record<string, unknown>>, name: string): string | undefined => {
  const value = own(payload, name)
  return typeof value === 'string' && value !== '' ? value : undefined
}

const timeIn = (payload: Readonly<Record<string, unknown>>, name: string): number | undefined => {
  const value = own(payload, name)
  return typeof value === 'number' && value > 0 ? Math.floor(value) : undefined
}
