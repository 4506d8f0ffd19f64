/** The authorization endpoint (RFC 6749 section 3.1), independent of HTTP. */

import { loginOf, type Principal } from '../../access/principal.ts'
import { type AccessGrant, deriveCutoffKeys } from '../../access/tokens/access-grant.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { randomBytes } from '../../crypto/random.ts'
import { Denied } from '../../errors.ts'
import { keyPart } from '../../redis/key-part.ts'
import { codeKeys } from '../../redis/keys.ts'
import { followsFapi, mayActFor } from '../authorization-server/client.ts'
import { type OAuthForm, parseForm } from '../authorization-server/form.ts'
import { issuableAtSeconds, revocationLookup } from '../authorization-server/grant-store.ts'
import type { AuthorizationServerOptions } from '../authorization-server/options.ts'
import {
  isRegisteredRedirect,
  withoutLoopbackPort,
} from '../authorization-server/schemas/redirect-uri.ts'
import { IS_UNMET, UNMET_MARK } from '../sign-in/return-path.ts'
import { type AuthorizationCodes, newCode } from './authorization-code.ts'
import { parseQuery } from './authorization-query.ts'
import { type AuthorizationRequest, formatParameters } from './authorization-request.ts'
import { type ConsentChange, type Consents, holdersOf, isCovered } from './consent.ts'
import type { Offer } from './offer.ts'
import type { ClientDirectory, ClientSearch, FoundClient } from './registration/directory.ts'
import { isRegisteredId, type RegisteredClients } from './registration/registered-clients.ts'
import {
  type Authorization,
  DECISION_SECONDS,
  handleHash,
  newHandle,
  OPENED_SECONDS,
  REQUEST_URI_PREFIX,
  type WaitingRequests,
} from './waiting-request.ts'
import type { Withdrawal } from './withdrawal.ts'

/** Documents of clients that one user may cause to be fetched. */
const DOCUMENTS = { name: 'client_documents', limit: 30, windowSeconds: 60 }
/** Requests of an address that demand a login. Each is stored. Pushed ones are counted apart. */
const LOGINS = { name: 'login_requests', windowSeconds: 60 }
/** A client that registered itself is kept for this time after its last session has ended. */
const KEPT_SECONDS = 2_592_000

export interface AuthorizationEndpointOptions
  extends Pick<
    AuthorizationServerOptions,
    'issuer' | 'store' | 'tenantIssuers' | 'profile' | 'now'
  > {
  readonly directory: ClientDirectory
  readonly registered: RegisteredClients | undefined
  readonly codes: AuthorizationCodes
  readonly consents: Consents
  readonly withdrawal: Pick<Withdrawal, 'makeRoom'>
  readonly waiting: WaitingRequests
  readonly offer: Offer
  /** Life of the sessions of clients. */
  readonly sessionSeconds: number
  /** Logins that the requests of one address may demand. */
  readonly loginsPerMinute: number
}

/** Parameters of a response in a redirect URI, as they are usually written: their names are not decoded. */
const OF_RESPONSE = new Set(['code', 'state', 'iss', 'error', 'error_description', 'error_uri'])

/** The signed-in user of a request. */
export interface RequestUser {
  readonly principal: Principal
  /** SHA-256 that identifies the browser session. */
  readonly sessionIdHash: string
}

/** The parameters of a request, after its `request_uri` has been resolved. */
export interface ReadRequest {
  readonly form: OAuthForm
  /** As of `Query`. */
  readonly mistake: Denied | undefined
  readonly clientId: string
  /** The hash of the handle of the opened request, if the client has pushed it. */
  readonly pushed: string | undefined
  /** From the stored request, if the browser comes back from a login that the request demanded. */
  readonly loginAfterSeconds: number | undefined
  /** Whether that login did not meet the demand. */
  readonly isUnmet: boolean
}

/** Where a response goes. The client has registered this redirect URI. */
export interface RedirectTarget {
  readonly redirectUri: string
  /** Whether the request does not name it, because the client has no other. */
  readonly isImplied?: boolean
  readonly state: string | undefined
}

/** Creates the steps of the endpoint. Each throws `Denied` and `Unavailable`. */
export function createAuthorizationEndpoint(options: AuthorizationEndpointOptions) {
  const { issuer, store, tenantIssuers, directory, registered, codes, consents, waiting } = options
  const { withdrawal, offer, sessionSeconds, loginsPerMinute, profile, now } = options

  return {
    /**
     * Returns the parameters of a query. The parameters of a stored request replace all others (RFC
     * 9126 section 4). A `request_uri` is valid until the user has decided, so that the browser can return
     * from a login and load the page again. It then gets no second code.
     */
    async read(query: string): Promise<ReadRequest> {
      const { form: given, mistake } = parseQuery(query)
      const clientId = given.one('client_id')
      if (clientId === undefined) throw oauthRefused('invalid_request', 'authorize_client_id')
      const uri = given.one('request_uri')
      if (uri === undefined)
        return {
          form: given,
          mistake,
          clientId,
          pushed: undefined,
          loginAfterSeconds: undefined,
          isUnmet: false,
        }
      const handle = uri.startsWith(REQUEST_URI_PREFIX)
        ? uri.slice(REQUEST_URI_PREFIX.length)
        : undefined
      const hash = await handleHash(handle)
      const found = hash && (await waiting.find(hash))
      if (!hash || !found || found.kind === 'undecided' || found.client !== clientId)
        throw oauthRefused('invalid_request_uri', 'request_uri')
      // The client had a minute. From now on, the user has the time of a login, and no visit renews it.
      const isOpened = found.kind === 'opened'
      if (!isOpened && !(await waiting.replace(hash, { ...found, kind: 'opened' }, OPENED_SECONDS)))
        throw oauthRefused('invalid_request_uri', 'request_uri_used')
      const { loginAfterSeconds } = found
      const pushed = loginAfterSeconds === undefined ? hash : found.pushed
      const isUnmet = loginAfterSeconds !== undefined && given.one(UNMET_MARK) === IS_UNMET
      const form = parseForm(found.parameters)
      return { form, mistake: undefined, clientId, pushed, loginAfterSeconds, isUnmet }
    },

    /**
     * Stores a request whose user must log in again, and returns the query with which the browser comes
     * back. The time of this demand is in the stored request, where no URL can change it. Throws `Denied`
     * (`rate_limited`) for an address with too many.
     */
    async awaitLogin(
      { form, clientId, pushed }: ReadRequest,
      { address, atSeconds }: { readonly address: string; readonly atSeconds: number },
    ): Promise<string> {
      const key = await counterKey(
        options,
        pushed === undefined ? 'logins' : 'pushed-logins',
        address,
      )
      const counter = { ...LOGINS, limit: loginsPerMinute, key }
      const { exhausted } = await store.consult({ keys: [], counters: [counter] })
      if (exhausted !== undefined) throw new Denied({ code: 'rate_limited', ...exhausted })
      const parameters = formatParameters(form, form.one('dpop_jkt'))
      const request = { kind: 'opened', client: clientId, parameters } as const
      const { text, hash } = await newHandle(randomBytes)
      await waiting.put(hash, { ...request, loginAfterSeconds: atSeconds, pushed }, OPENED_SECONDS)
      const query = { client_id: clientId, request_uri: REQUEST_URI_PREFIX + text }
      return String(new URLSearchParams(query))
    },

    /** Returns the client from what is stored or cached. Calls no other host. */
    search: (clientId: string): Promise<ClientSearch> =>
      directory.find(clientId, { mayFetch: false }),

    /** As `search`, and fetches the client's document for this user. */
    async searchFor({ principal }: RequestUser, clientId: string): Promise<ClientSearch> {
      const by = `${principal.issuer} ${principal.subject}`
      const key = await counterKey(options, 'documents', by)
      const { exhausted } = await store.consult({ keys: [], counters: [{ ...DOCUMENTS, key }] })
      if (exhausted !== undefined) throw new Denied({ code: 'rate_limited', ...exhausted })
      return directory.find(clientId, { mayFetch: true })
    },

    /**
     * Returns where a response may go. A client with one redirect URI need not name it (RFC 6749 section
     * 3.1.2.3), except under a profile. Throws `Denied` if the client has not registered the redirect
     * URI, or may not use this endpoint: that refusal must not be sent to the redirect URI.
     */
    targetOf({ client }: FoundClient, form: OAuthForm): RedirectTarget {
      const { redirectUris = [], grants } = client
      const stated = form.one('redirect_uri')
      const mayImply = redirectUris.length === 1 && !followsFapi(client, profile)
      const redirectUri = stated ?? (mayImply ? redirectUris[0] : undefined)
      if (!grants.includes('authorization_code'))
        throw oauthRefused('unauthorized_client', 'authorize_grant')
      // A port that is too large is no URL.
      const isUrl = redirectUri !== undefined && URL.canParse(redirectUri)
      if (!isUrl || !isRegisteredRedirect(redirectUri, redirectUris))
        throw oauthRefused('invalid_request', 'authorize_redirect_uri')
      const state = form.one('state')
      return { redirectUri, state, ...(stated === undefined && { isImplied: true }) }
    },

    /** Throws `Denied` if the client must push its requests, and has not. */
    requirePushed({ client }: FoundClient, { pushed }: ReadRequest): void {
      if (pushed === undefined && followsFapi(client, profile))
        throw oauthRefused('invalid_request', 'authorize_request_uri')
    },

    /** Computes what the client would get, if the user allows it. No I/O. */
    propose(
      { client }: FoundClient,
      user: RequestUser,
      request: AuthorizationRequest,
      { redirectUri, isImplied, pushed }: RedirectTarget & { readonly pushed: string | undefined },
    ): Authorization {
      if (!mayActFor(client, user.principal, tenantIssuers))
        throw oauthRefused('access_denied', 'authorize_tenant')
      const audiences = offer.audiencesOf(request.resources, client)
      return {
        kind: 'undecided',
        browserSession: user.sessionIdHash,
        client: client.id,
        name: client.name,
        redirectUri,
        isImplied,
        state: request.state,
        challenge: request.challenge,
        scopes: offer.scopesFor(user.principal, client, request.scope, audiences),
        audiences,
        refresh: client.grants.includes('refresh_token'),
        dpopKey: request.dpopKey,
        dpopBound: client.dpopBound,
        pushed,
      }
    },

    /** Reports whether the user has allowed all of it before, and need not be asked again. */
    async isAllowed(user: RequestUser, authorization: Authorization): Promise<boolean> {
      for (const holder of holdersOf(user.principal))
        if (isCovered(await consents.find(holder, authorization.client), authorization)) return true
      return false
    },

    /** Reports whether the user has allowed the client before, with this redirect URI. */
    async hasAllowed({ principal }: RequestUser, clientId: string, redirectUri: string) {
      for (const holder of holdersOf(principal)) {
        const consent = await consents.find(holder, clientId)
        if (consent?.redirectUri === withoutLoopbackPort(redirectUri)) return true
      }
      return false
    },

    /** Stores what the consent page shows. Returns the handle for its form. */
    async hold(authorization: Authorization): Promise<string> {
      const { text, hash } = await newHandle(randomBytes)
      await waiting.put(hash, authorization, DECISION_SECONDS)
      return text
    },

    /**
     * Returns what a consent page showed, once. Throws `Denied` unless this browser session was shown
     * that page, so that no other page can decide for the user.
     */
    async taken(handle: string | undefined, user: RequestUser): Promise<Authorization> {
      const hash = await handleHash(handle)
      const found = hash && (await waiting.find(hash))
      if (!hash || !found || found.kind !== 'undecided')
        throw oauthRefused('invalid_request', 'consent_unknown')
      if (found.browserSession !== user.sessionIdHash)
        throw oauthRefused('invalid_request', 'consent_of_another_session')
      // Of two submissions of one form, one gets a code.
      if ((await waiting.take(hash)) === undefined)
        throw oauthRefused('invalid_request', 'consent_unknown')
      return found
    },

    /** Uses up a request that the user has refused. */
    async discard({ pushed }: Authorization): Promise<void> {
      if (pushed !== undefined) await waiting.take(pushed)
    },

    /**
     * Records the consent and returns a new code for it. `isRepeated`: the user has allowed it before,
     * and was not asked again. Throws `Denied` if the consent has been withdrawn since, if the browser session has been
     * revoked, or if the pushed request has a code already.
     */
    async issue(
      user: RequestUser,
      authorization: Authorization,
      { isRepeated }: Pick<ConsentChange, 'isRepeated'>,
    ): Promise<string> {
      const { principal } = user
      const { client, scopes, audiences, dpopKey, pushed } = authorization
      if (pushed !== undefined && (await waiting.take(pushed)) === undefined)
        throw oauthRefused('invalid_request_uri', 'request_uri_used')
      const id = crypto.randomUUID()
      const grant: AccessGrant = {
        subject: principal.subject,
        subjectIssuer: principal.issuer === issuer ? undefined : principal.issuer,
        client,
        tenant: principal.tenant,
        session: id,
        roles: principal.roles,
        scopes,
        audiences,
        confirmation: dpopKey,
        login: knownLogin(principal),
      }
      const keys = await deriveCutoffKeys(store.keys, grant, issuer)
      const own = await revocationLookup(store.keys, principal)
      const { subject } = principal
      const { values } = await store.consult({ keys: [...own.keys, ...keys], subject })
      // What admitted the request may not have had the revocation yet. The new session would be newer than it.
      if (own.revokedBy(values) !== undefined)
        throw oauthRefused('login_required', 'authorize_login')
      const nowMs = now()
      const startedAtSeconds = issuableAtSeconds(values.slice(own.keys.length), nowMs)
      const expiresAtSeconds = startedAtSeconds + sessionSeconds
      const consent = {
        client,
        name: authorization.name,
        redirectUri: withoutLoopbackPort(authorization.redirectUri),
        scopes,
        audiences,
        allowedAtSeconds: Math.floor(nowMs / 1000),
      }
      // The milliseconds order sessions of the same second.
      const session = { id, expiresAtSeconds: expiresAtSeconds + (nowMs % 1000) / 1000 }
      // A new consent is stored with the tenant of the user; a repeated one stays where it is.
      const holders = isRepeated ? holdersOf(principal) : [principal]
      let isStored = false
      for (const holder of holders) {
        const ended = await withdrawal.makeRoom(holder, client)
        isStored = await consents.allow(holder, consent, { session, ended, isRepeated })
        if (isStored) break
      }
      if (!isStored) throw oauthRefused('consent_required', 'authorize_consent')
      if (isRegisteredId(client)) await registered?.keep(client, sessionSeconds + KEPT_SECONDS)
      const code = await newCode(randomBytes, grant.subject, codes)
      await codes.put(code.hash, {
        session: { id, grant, startedAtSeconds, expiresAtSeconds },
        redirectUri: authorization.redirectUri,
        isImplied: authorization.isImplied,
        challenge: authorization.challenge,
        refresh: authorization.refresh,
        dpopBound: authorization.dpopBound,
        browserSession: authorization.browserSession,
        browserCutoffs: {
          // The record names the session itself, and the script reads those that cover the new session.
          names: own.cutoffs
            .filter((key) => !keys.includes(key))
            .map((key) => key.slice(store.keys.prefix.length)),
          issuedAtSeconds: principal.issuedAtSeconds,
        },
        familyAttempt: code.familyAttempt,
      })
      return code.text
    },

    /**
     * Returns the URL of a response (RFC 6749 section 4.1.2, RFC 9207): the redirect URI with its query,
     * except for what the response itself says. Clients differ in which of two parameters they read.
     */
    responseUrl(
      { redirectUri, state }: RedirectTarget,
      members: Readonly<Record<string, string>>,
    ): string {
      const query = new URLSearchParams(members)
      if (state !== undefined) query.set('state', state)
      query.set('iss', issuer)
      const [base = ''] = redirectUri.split('?', 1)
      const own = redirectUri.slice(base.length + 1)
      const parts = own === '' ? [] : own.split('&')
      const kept = parts.filter((part) => !OF_RESPONSE.has(part.split('=', 1)[0] ?? ''))
      return `${base}?${[...kept, query].join('&')}`
    },
  }
}

/** Returns what the tokens of a session state about the login of its user. */
function knownLogin(principal: Principal): AccessGrant['login'] {
  const { acr, amr, authTimeSeconds } = loginOf(principal) ?? {}
  return { acr, amr, authTimeSeconds }
}

export type AuthorizationEndpoint = ReturnType<typeof createAuthorizationEndpoint>

/** The maximum age of the login that a request demands. */
export const LOGIN_SECONDS = 600

/** Returns the key of a counter of requests that anyone may send. */
async function counterKey(
  { store }: Pick<AuthorizationServerOptions, 'store'>,
  what: string,
  by: string,
): Promise<string> {
  return `${codeKeys(store.keys).oauthRequests}${what}:${await keyPart(by)}`
}
