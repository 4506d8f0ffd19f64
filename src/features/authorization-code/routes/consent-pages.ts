/** The pages of the authorization endpoint: consent, refusal, and the list of consents. */
import { html } from 'hono/html'
import { classifyRedirect } from '../../authorization-server/schemas/redirect-uri.ts'
import { inEnglish } from '../../sign-in/pages/denied-page.ts'
import type { PageContent } from '../../sign-in/rendering/content.ts'
import {
  formatDay,
  inUnknownLanguage,
  type PageLanguage,
  textsOf,
} from '../../sign-in/rendering/language.ts'
import type { Page } from '../../sign-in/rendering/page.ts'
import { signInPath } from '../../sign-in/return-path.ts'
import type { Consent } from '../consent.ts'
import type { ClientOrigin } from '../registration/directory.ts'
import type { Authorization } from '../waiting-request.ts'
import { ENGLISH } from './english.ts'

export const CONSENT_PATH = '/oauth/consent'
export const CONSENTS_PATH = '/oauth/consents'

/** Words for permissions on the consent page: `{ 'orders:read': 'See your orders' }`. */
export type ScopeWords = Readonly<Record<string, string>>

export interface ConsentPage {
  readonly authorization: Authorization
  readonly origin: ClientOrigin
  /** The handle of the request. */
  readonly handle: string
  /** Who is signed in. */
  readonly account: string
  /** The path and query of this page. */
  readonly path: string
  /** The gateway's public URL. */
  readonly publicUrl: string
  readonly words: ScopeWords
  /** Private-use schemes of redirect URIs that the policy permits. */
  readonly schemes: readonly string[]
}

const sayIn = textsOf('authorizationCode', ENGLISH)

/** Returns the page that asks the user. It says who vouches for the name of the client. */
export function consentPage(language: PageLanguage, page: ConsentPage): Page {
  const { authorization, handle, account, path, publicUrl, words } = page
  const { name, redirectUri, scopes, audiences } = authorization
  const places = audiences.length > 1 ? audiences.slice(1) : audiences
  const say = sayIn(language)
  const parties = {
    app: html`<strong>${inUnknownLanguage(language, name)}</strong>`,
    service: html`<strong>${new URL(publicUrl).host}</strong>`,
    account: html`<strong>${account}</strong>`,
  }
  const link = html`<a href="${CONSENTS_PATH}">${say('apps.title')}</a>`
  return {
    title: say('consent.title'),
    formTargets: [formTargetOf(redirectUri)],
    content: html`<p>${say('consent.text', parties)}
<a href="${signInPath({ returnPath: path, prompt: 'select_account' })}">${say('consent.otherAccount')}</a></p>
<p>${originText(language, page)}</p>
<p>${say('consent.able')}</p>
${scopeList(language, scopes, words)}
<p>${say('consent.places', { places: places.join(', ') })}</p>
<p>${destinationText(language, page)}</p>
<form method="post" action="${CONSENT_PATH}">
<input type="hidden" name="request" value="${handle}">
<button name="decision" value="allow" class="main">${say('consent.allow')}</button>
<button name="decision" value="deny" class="apart">${say('consent.deny')}</button>
</form>
<p><small>${say('consent.withdrawal', { link })}</small></p>`,
  }
}

function originText(language: PageLanguage, { authorization, origin }: ConsentPage): PageContent {
  const say = sayIn(language)
  switch (origin) {
    case 'operator':
      return say('consent.byOperator')
    case 'document':
      return say('consent.byDocument', {
        host: html`<strong>${new URL(authorization.client).host}</strong>`,
      })
    case 'itself':
      return html`<strong>${say('consent.unverified')}</strong> ${say('consent.byItself')}`
    default:
      return origin satisfies never
  }
}

function destinationText(
  language: PageLanguage,
  { authorization, schemes }: ConsentPage,
): PageContent {
  const say = sayIn(language)
  const { name, redirectUri } = authorization
  const url = new URL(redirectUri)
  const host = html`<strong>${url.host}</strong>`
  const caution = say('consent.caution', { app: inUnknownLanguage(language, name) })
  switch (classifyRedirect(redirectUri, schemes)) {
    case 'https':
      return say('consent.toHost', { host })
    case 'loopback':
      return html`${say('consent.toProgram', { host })} ${caution}`
    default: {
      const scheme = html`<strong>${url.protocol}</strong>`
      return html`${say('consent.toApp', { scheme })} ${caution}`
    }
  }
}

/**
 * Returns an origin, or a scheme, as a source of the Content-Security-Policy. It has no form for IPv6
 * addresses, and browsers would block the redirect to one.
 */
function formTargetOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri)
  const isOrigin = (protocol === 'https:' || protocol === 'http:') && !host.startsWith('[')
  return isOrigin ? `${protocol}//${host}` : protocol
}

/** The words of the language come before those of the policy. */
function scopeList(
  language: PageLanguage,
  scopes: readonly string[],
  words: ScopeWords,
): PageContent {
  const items = scopes.map((name) => {
    const own = language.texts.scopes ?? {}
    const known = [own, words].find((each) => Object.hasOwn(each, name))
    const word = known?.[name]
    if (word === undefined) return html`<li><code>${name}</code></li>`
    const shown = known === own ? word : inUnknownLanguage(language, word)
    return html`<li>${shown} <small>(<code>${name}</code>)</small></li>`
  })
  return html`<ul class="marks">${items}</ul>`
}

/** Returns the list of the apps that a user has allowed, the newest first, each with a form that withdraws it. */
export function consentsPage(
  language: PageLanguage,
  consents: readonly Consent[],
  words: ScopeWords,
): Page {
  const say = sayIn(language)
  const newestFirst = consents.toSorted(
    (one, other) => other.allowedAtSeconds - one.allowedAtSeconds,
  )
  const items = newestFirst.map(({ client, name, scopes, allowedAtSeconds, redirectUri }) => {
    const day = formatDay(language, allowedAtSeconds)
    return html`<section><h2>${inUnknownLanguage(language, name)}</h2>
<p>${say('apps.allowed', { day })}</p>
${scopeList(language, scopes, words)}
<details><summary>${say('apps.details')}</summary><p><small>${client}<br>${redirectUri}</small></p></details>
<form method="post" action="${CONSENTS_PATH}">
<input type="hidden" name="client" value="${client}">
<button>${say('apps.withdraw')}</button></form></section>`
  })
  return {
    title: say('apps.title'),
    content:
      items.length === 0
        ? html`<p>${say('apps.none')}</p>`
        : html`<p>${say('apps.text')}</p>${items}`,
  }
}

export interface Refusal {
  readonly status: number
  /** The error code. */
  readonly error: string
  readonly description: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The URL of the response at the client, to which only the user may go. */
  readonly returnTo?: string | undefined
  /** The user has none of the permissions of the request. */
  readonly lacksPermissions?: boolean
}

/** A scheme without a host is that of an app. */
const placeOf = (url: string): string => {
  const { host, protocol } = new URL(url)
  return host || protocol
}

function returnLink(language: PageLanguage, url: string | undefined): PageContent {
  if (url === undefined) return ''
  const say = sayIn(language)
  const link = html`<a href="${url}" rel="noreferrer">${say('refusal.returnTo', { place: placeOf(url) })}</a>`
  return html`<p>${say('refusal.return', { link })}</p>`
}

/** Returns the page for a request that must not be answered at its redirect URI. */
export function refusalPage(language: PageLanguage, refusal: Refusal): Page {
  const { status, error, description, headers = {}, returnTo, lacksPermissions } = refusal
  const say = sayIn(language)
  const code = html`<code>${error}</code>`
  if (lacksPermissions)
    return {
      title: say('refusal.access.title'),
      status: 403,
      headers,
      content: html`<p>${say('refusal.access.text')} ${code}</p>${returnLink(language, returnTo)}`,
    }
  const kind = status >= 500 ? 'outage' : 'mistake'
  return {
    title: say(`refusal.${kind}.title`),
    status: status as NonNullable<Page['status']>,
    headers,
    content: html`<p>${say(`refusal.${kind}.text`)}</p>
${inEnglish(html`<small>${description} ${code}</small>`)}
${returnLink(language, returnTo)}`,
  }
}
