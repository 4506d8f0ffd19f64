/** An OpenID Provider: the gateway as its client, through `oauth4webapi`. */
import * as oauth from 'oauth4webapi'
import type { LoginFacts, Principal } from '../../access/principal.ts'
import { isAcceptable } from '../../access/tokens/discovery.ts'
import { requireKey } from '../../access/tokens/issuer-client-authentication.ts'
import { readHeader, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import { isWithinAge, unmetBy } from '../../access/tokens/login.ts'
import { present } from '../../access/tokens/present.ts'
import { rejected, rejectedFor } from '../../access/tokens/rejection.ts'
import type { RemoteKeySetOptions } from '../../access/tokens/remote-key-set.ts'
import { createKeySet } from '../../access/tokens/verifier.ts'
import { Denied, ignoreOutage, Unavailable } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { type IssuerConfig, idTokenAlgorithmOf, mediaType } from '../../validators/issuer.ts'
import type { IssuerClient } from '../../validators/issuer-client.ts'
import { authorizationUrl } from './authorization-request.ts'
import { callbackPathOf, namesItself } from './callback.ts'
import { contactsIn, nameIn, type VerifiedContacts } from './contacts.ts'
import { createIdTokenVerifier } from './id-token.ts'
import { type LogoutToken, logoutIn } from './logout-token.ts'
import { classifyFailure, unavailable } from './provider-call.ts'
import { CALL_TIMEOUT_MS, createProviderClient } from './provider-client.ts'
import { createProviderMetadata } from './provider-metadata.ts'
import { signInRefused } from './refused.ts'
import { CALLBACK_PATH, type SignInDemand } from './return-path.ts'
import type { SignInSettings } from './schema.ts'
import { createSeal } from './seal.ts'
import { readTokenResponse, type TokenResponse, textIn } from './token-response.ts'
import { createUserInfo } from './user-info.ts'

/** The tokens that a session keeps, encrypted. */
export interface ProviderTokens {
  /** Identifies the user at a sign-out at the provider. Empty: the provider has no ID tokens. */
  readonly idToken: string
  readonly refreshToken?: string | undefined
  /** That of the login. Undefined: an earlier version stored the tokens, or the provider has no ID tokens. */
  readonly nonce?: string | undefined
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
  /** How and when the user authenticated. */
  readonly facts: LoginFacts
  /** The name of the user. Default: none. */
  readonly name?: string | undefined
  /** Default: none. */
  readonly contacts?: VerifiedContacts
}

export interface LoginSecrets {
  readonly state: string
  readonly nonce: string
  /** Of PKCE (RFC 7636). */
  readonly verifier: string
}

export interface AuthorizationRequest extends LoginSecrets, Omit<SignInDemand, 'returnPath'> {
  /** Where the response arrives. */
  readonly callbackPath: string
}

export type ExpectedLogin = Omit<AuthorizationRequest, 'prompt' | 'loginHint' | 'uiLocales'>

export type Provider = ReturnType<typeof createProvider>

export interface ProviderOptions {
  readonly client: IssuerClient
  readonly settings: SignInSettings
  readonly issuer: IssuerConfig
  /** The gateway's public URL. */
  readonly publicUrl: string
  /** Whether users sign in at this provider only. */
  readonly isOnly: boolean
  /** Where the browser returns after it has signed out at the provider. */
  readonly signedOutUri: string
  readonly watch?: RemoteKeySetOptions['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Common servers accept addresses of 8 KB. */
const MAX_HINT_CHARACTERS = 4_096
/** Refreshed when this part of the access token's life has passed. */
const REFRESHED_AT = 0.9
/** For a provider that does not state how long an access token lives. */
const DEFAULT_REFRESH_SECONDS = 600
/**
 * Errors of a refresh after which only a new login helps: RFC 6749 section 5.2, and OpenID Connect Core
 * section 3.1.2.6, which some providers use there too.
 */
const SIGN_IN_AGAIN: readonly string[] = [
  ...['invalid_grant', 'interaction_required', 'login_required', 'consent_required'],
  'account_selection_required',
]
/** Section 2.4 of Back-Channel Logout recommends the first; many providers use the second or none. */
const LOGOUT_TOKEN_TYPES = ['logout+jwt', 'jwt']

export function createProvider({
  client: credentials,
  settings,
  issuer: config,
  publicUrl,
  isOnly,
  signedOutUri,
  watch,
  now,
}: ProviderOptions) {
  const { issuer } = config
  const algorithm = idTokenAlgorithmOf(config)
  const keySet = createKeySet({ ...config, algorithms: [algorithm] }, now, { watch })
  const idTokens = createIdTokenVerifier({ config, keySet, settings, client: credentials.id, now })
  const userInfo = createUserInfo({
    issuer,
    client: credentials.id,
    algorithm,
    keySet,
    mode: settings.userInfo,
    timeoutMs: CALL_TIMEOUT_MS,
  })
  const { client, authentication, callOptions, exchange } = createProviderClient({
    client: credentials,
    issuer: config,
    publicUrl,
    now,
  })

  const metadata = createProviderMetadata({
    issuer,
    callOptions,
    timeoutMs: CALL_TIMEOUT_MS,
    now,
  })

  /** Returns the second in which tokens should be refreshed, before the access token expires. */
  function refreshTimeOf({ expiresIn: seconds }: TokenResponse): number {
    const life = seconds === undefined ? DEFAULT_REFRESH_SECONDS : seconds * REFRESHED_AT
    return Math.floor(now() / 1000 + Math.max(1, life))
  }

  let isAuthTimeReported = false

  /** Throws `Denied` (`sign_in_refused`) unless the login is at most so old. */
  function refuseOldLogin(
    payload: Readonly<Record<string, unknown>>,
    { facts: { authTimeSeconds } }: Login,
    maxAgeSeconds: number,
  ) {
    if (isWithinAge(authTimeSeconds, maxAgeSeconds, now())) return
    if (authTimeSeconds !== undefined) throw signInRefused('auth_time_old')
    const isStated = present(payload, 'auth_time') !== undefined
    const check = isStated ? 'auth_time_unusable' : 'auth_time_missing'
    // Only the operator can correct the provider. Once, because every user would repeat it.
    if (!isAuthTimeReported) console.error(JSON.stringify({ incident: `sign_in_${check}`, issuer }))
    isAuthTimeReported = true
    throw signInRefused(check)
  }

  return {
    issuer,
    /** For the page on which the user chooses. */
    name: settings.name,
    logo: settings.logo,
    /** Encrypts the tokens of sessions. */
    seal: createSeal('key' in credentials ? JSON.stringify(credentials.key) : credentials.secret),

    /** Throws `Unavailable` if the provider does not respond. */
    async callbackPath(): Promise<string> {
      const { callback } = settings
      const rules = { issuer, isOnly, callback, namesItself: namesItself(await metadata.current()) }
      return callbackPathOf(rules)
    },

    /** Throws `Unavailable` if the provider does not respond. */
    async authorizationUrl(request: AuthorizationRequest): Promise<URL> {
      const { state, nonce, verifier, prompt, maxAgeSeconds, acr, callbackPath } = request
      const { loginHint, uiLocales } = request
      // Before the user goes to a provider from which no login can return.
      await requireKey(credentials, now(), 'identity_provider')
      const as = await metadata.current()
      const parameters = {
        response_type: 'code',
        client_id: credentials.id,
        redirect_uri: publicUrl + callbackPath,
        scope: settings.scope,
        state,
        nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        prompt,
        max_age: maxAgeSeconds === undefined ? undefined : String(maxAgeSeconds),
        acr_values: acr?.join(' '),
        login_hint: loginHint,
        ui_locales: uiLocales,
      }
      return authorizationUrl({
        ...{ as, client, authentication, parameters, settings },
        callOptions,
      })
    },

    /**
     * Exchanges the code of an authorization response and verifies the ID token. Throws `Denied`
     * (`sign_in_refused`) and `Unavailable`.
     */
    async complete(
      response: URLSearchParams,
      expected: ExpectedLogin,
      waitUntil?: WaitUntil,
    ): Promise<Login> {
      const { nonce, maxAgeSeconds, acr, callbackPath } = expected
      // Metadata that changes during a login must not make a shared callback accept a response of any
      // provider.
      const mustNameItself =
        !isOnly && settings.callback === undefined && callbackPath === CALLBACK_PATH
      if (mustNameItself && !response.has('iss')) throw signInRefused('callback')
      const as = await metadata.last()
      let tokens: TokenResponse
      try {
        tokens = await exchange(as, response, expected)
      } catch (error) {
        throw classifyFailure(error, issuer)
      }
      const { idToken, accessToken, refreshToken } = tokens
      if (idToken === undefined) throw signInRefused('id_token_missing')
      const { payload, claims, principal } = await idTokens(idToken, {
        nonce,
        waitUntil,
        findMore: (subject) =>
          userInfo({ endpoint: endpointIn(as), accessToken, subject, waitUntil }),
      })
      const login: Login = {
        principal,
        tokens: { idToken, refreshToken, nonce },
        refreshAtSeconds: refreshToken === undefined ? undefined : refreshTimeOf(tokens),
        providerSubject: textIn(payload, 'sub') ?? '',
        // A logout token names `sid`, whatever claim the issuer is configured with.
        providerSession: textIn(payload, 'sid') ?? principal.session,
        facts: principal.login ?? {},
        name: nameIn(claims),
        contacts: contactsIn(claims),
      }
      if (maxAgeSeconds !== undefined) refuseOldLogin(payload, login, maxAgeSeconds)
      // Otherwise the browser would be sent to the provider again and again.
      if (unmetBy(login.facts, { acr }, now()) !== undefined) throw signInRefused('acr')
      return login
    },

    /**
     * Refreshes the tokens of a session. Undefined: the provider has ended the session. Throws
     * `Unavailable` if that is not known.
     */
    async refresh({
      idToken,
      refreshToken = '',
      nonce,
    }: ProviderTokens): Promise<Refreshed | undefined> {
      const as = await metadata.last()
      let tokens: TokenResponse
      try {
        const answer = await oauth.refreshTokenGrantRequest(
          as,
          client,
          authentication,
          refreshToken,
          callOptions(),
        )
        tokens = await readTokenResponse(as, client, answer)
      } catch (error) {
        if (error instanceof oauth.ResponseBodyError && SIGN_IN_AGAIN.includes(error.error))
          return undefined
        const failure = classifyFailure(error, issuer)
        throw failure instanceof Unavailable ? failure : unavailable(error)
      }
      const fresh = tokens.idToken
      return {
        tokens: {
          idToken: fresh ?? idToken,
          refreshToken: tokens.refreshToken ?? refreshToken,
          nonce,
        },
        refreshAtSeconds: refreshTimeOf(tokens),
        principal: async () =>
          fresh === undefined
            ? undefined
            : (
                await idTokens(fresh, {
                  nonce,
                  isRefreshed: true,
                  findMore: (subject) =>
                    userInfo({
                      endpoint: endpointIn(as),
                      accessToken: tokens.accessToken,
                      subject,
                    }),
                })
              ).principal,
      }
    },

    /** Returns where a browser signs out at the provider. Undefined: nowhere, or not at the moment. */
    async signOutUrl(idToken: string | undefined): Promise<URL | undefined> {
      if (settings.signOut !== undefined) {
        const { url: endpoint, returnTo } = settings.signOut
        const url = new URL(endpoint)
        url.searchParams.set('client_id', credentials.id)
        url.searchParams.set(returnTo, signedOutUri)
        return url
      }
      const as = await metadata.current().catch(ignoreOutage)
      const endpoint = as?.end_session_endpoint
      if (endpoint === undefined || !isAcceptable(endpoint, issuer)) return undefined
      const url = new URL(endpoint)
      url.searchParams.set('client_id', credentials.id)
      url.searchParams.set('post_logout_redirect_uri', signedOutUri)
      // Without the hint, most providers ask the user. A longer address gets no answer at all.
      if (idToken !== undefined && idToken.length <= MAX_HINT_CHARACTERS)
        url.searchParams.set('id_token_hint', idToken)
      return url
    },

    /** Verifies a logout token. Throws `Denied` (`sign_in_refused`) and `Unavailable`. */
    async logoutToken(text: string, waitUntil?: WaitUntil): Promise<LogoutToken> {
      try {
        const header = readHeader(text)
        if (header.alg !== algorithm) throw rejectedFor('alg', header.alg, [algorithm])
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

const endpointIn = ({ userinfo_endpoint: endpoint }: oauth.AuthorizationServer) => endpoint
