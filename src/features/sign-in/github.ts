/** GitHub as a provider: plain OAuth 2.0 (RFC 6749), without ID tokens. The API names the user. */
import * as oauth from 'oauth4webapi'
import { principalFrom } from '../../access/tokens/claims.ts'
import { call } from '../../access/tokens/document.ts'
import { issuerRules } from '../../access/tokens/issuer-rules.ts'
import { issuerFor } from '../../access/tokens/issuer-uses.ts'
import { Denied, Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import { callbackPathOf } from './callback.ts'
import { nameIn } from './contacts.ts'
import { GITHUB_API_HEADERS, githubEndpoints } from './github-endpoints.ts'
import type { ExpectedLogin, Provider, ProviderOptions } from './provider.ts'
import { classifyFailure, clientRefused } from './provider-call.ts'
import { CALL_TIMEOUT_MS, createProviderClient } from './provider-client.ts'
import { signInRefused } from './refused.ts'
import { createSeal } from './seal.ts'
import type { TokenResponse } from './token-response.ts'

type Members = Readonly<Record<string, unknown>>

/** The id and the name of the user, and its addresses. */
const SCOPE = 'read:user user:email'
const MAX_RESPONSE_BYTES = 65_536
/** Of the claims, which are used at once. */
const CLAIMS_SECONDS = 60
/** Statuses of an access token that the API does not accept. All others are outages. */
const REFUSED: readonly number[] = [401, 404]

/**
 * Creates the provider of `"preset": "github"`. The subject is the id of the account, because a user can
 * change its name, and another user can then take it. `email` is the primary address, only if GitHub
 * has verified it. A demand for `acr` or an age is never met: GitHub does not state a login.
 */
export function createGitHub({
  client: credentials,
  settings,
  issuer: config,
  publicUrl,
  isOnly,
  now,
}: ProviderOptions): Provider {
  const { issuer } = config
  const { require, apiUrl } = settings
  const endpoints = githubEndpoints(issuer, apiUrl)
  const as: oauth.AuthorizationServer = { issuer, token_endpoint: endpoints.token }
  const oauthClient = createProviderClient({ client: credentials, issuer: config, publicUrl, now })
  const rules = issuerRules(issuerFor(config, { use: 'id_token', client: credentials.id, require }))
  async function exchange(
    response: URLSearchParams,
    expected: ExpectedLogin,
  ): Promise<TokenResponse> {
    try {
      return await oauthClient.exchange(as, response, expected)
    } catch (error) {
      // GitHub's name for `invalid_grant`. Its other errors are about the client.
      if (error instanceof oauth.ResponseBodyError && error.error === 'bad_verification_code')
        throw signInRefused('code', { cause: error })
      if (error instanceof oauth.ResponseBodyError) throw clientRefused(issuer, 'client', error)
      throw classifyFailure(error, issuer)
    }
  }

  async function read(url: string, accessToken: string): Promise<unknown> {
    const { status, text } = await call(
      url,
      { headers: { ...GITHUB_API_HEADERS, authorization: `Bearer ${accessToken}` } },
      {
        dependency: 'identity_provider',
        maxBytes: MAX_RESPONSE_BYTES,
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      },
    )
    if (REFUSED.includes(status)) throw signInRefused('user_info_refused')
    if (status !== 200) throw new Unavailable('identity_provider', 'refused')
    try {
      return parseStrictJson(text)
    } catch (cause) {
      throw new Unavailable('identity_provider', 'malformed', { cause })
    }
  }

  /** Returns the claims that an ID token of the user would have. */
  async function findClaims(accessToken: string): Promise<Members> {
    const [user, emails] = await Promise.all([
      read(endpoints.user, accessToken),
      read(endpoints.emails, accessToken),
    ])
    if (!isRecord(user) || !Number.isSafeInteger(user.id) || !Array.isArray(emails))
      throw new Unavailable('identity_provider', 'malformed')
    const email = emails.find(
      (one) => isRecord(one) && one.primary === true && one.verified === true,
    )?.email
    const nowSeconds = Math.floor(now() / 1000)
    return {
      iss: issuer,
      aud: credentials.id,
      sub: String(user.id),
      iat: nowSeconds,
      exp: nowSeconds + CLAIMS_SECONDS,
      preferred_username: user.login,
      name: user.name,
      ...(typeof email === 'string' && { email, email_verified: true }),
    }
  }

  return {
    issuer,
    name: settings.name,
    logo: settings.logo,
    seal: createSeal('key' in credentials ? JSON.stringify(credentials.key) : credentials.secret),

    async callbackPath() {
      return callbackPathOf({ issuer, isOnly, callback: settings.callback, namesItself: false })
    },

    async authorizationUrl({ state, verifier, prompt, loginHint, callbackPath }) {
      const url = new URL(endpoints.authorization)
      const parameters = {
        response_type: 'code',
        client_id: credentials.id,
        redirect_uri: publicUrl + callbackPath,
        scope: SCOPE,
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        prompt: prompt === 'select_account' ? prompt : undefined,
        login: loginHint,
      }
      for (const [name, value] of [settings.parameters ?? {}, parameters].flatMap(Object.entries))
        if (value !== undefined) url.searchParams.set(name, value)
      return url
    },

    async complete(response, expected) {
      const { accessToken } = await exchange(response, expected)
      if (accessToken === undefined) throw signInRefused('user_info_missing')
      const claims = await findClaims(accessToken)
      if (expected.maxAgeSeconds !== undefined) throw signInRefused('auth_time_missing')
      if (expected.acr !== undefined) throw signInRefused('acr')
      try {
        const principal = await principalFrom(claims, rules, { nowMs: now(), isOwn: false })
        return {
          principal: { ...principal, client: credentials.id },
          // The access token is not kept: nothing needs it after the login.
          tokens: { idToken: '' },
          refreshAtSeconds: undefined,
          name: nameIn(claims),
          providerSubject: String(claims.sub),
          providerSession: undefined,
          facts: {},
        }
      } catch (error) {
        if (error instanceof Denied && error.denial.code === 'token_rejected')
          throw signInRefused(`id_token_${error.denial.check}`, { cause: error })
        throw error
      }
    },

    refresh: async () => undefined,
    signOutUrl: async () => undefined,
    logoutToken: async () => {
      throw signInRefused('logout_token_iss')
    },
  }
}

const isRecord = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
