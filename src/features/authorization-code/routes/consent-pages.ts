/** The pages of the authorization endpoint: consent, refusal, and the list of consents. */
import { html } from 'hono/html'
import { classifyRedirect } from '../../authorization-server/schemas/redirect-uri.ts'
import type { Page, PageContent } from '../../sign-in/pages/page.ts'
import { signInPath } from '../../sign-in/return-path.ts'
import type { Consent } from '../consent.ts'
import type { ClientOrigin } from '../registration/directory.ts'
import type { Authorization } from '../waiting-request.ts'

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

/** Returns the page that asks the user. It says who vouches for the name of the client. */
export function consentPage(page: ConsentPage): Page {
  const { authorization, handle, account, path, publicUrl, words } = page
  const { name, redirectUri, scopes, audiences } = authorization
  const places = audiences.length > 1 ? audiences.slice(1) : audiences
  return {
    title: 'Allow access?',
    formTargets: [formTargetOf(redirectUri)],
    content: html`<p><strong>${name}</strong> wants to use <strong>${new URL(publicUrl).host}</strong>
as <strong>${account}</strong>.
<a href="${signInPath({ returnPath: path, prompt: 'select_account' })}">Use another account</a></p>
<p>${originText(page)}</p>
<p>It will be able to:</p>
${scopeList(scopes, words)}
<p>At: ${places.join(', ')}</p>
<p>${destinationText(page)}</p>
<form method="post" action="${CONSENT_PATH}">
<input type="hidden" name="request" value="${handle}">
<button name="decision" value="allow" class="main">Allow</button>
<button name="decision" value="deny" class="apart">Deny</button>
</form>
<p><small>You can withdraw this later at <a href="${CONSENTS_PATH}">${CONSENTS_PATH}</a>.</small></p>`,
  }
}

function originText({ authorization, origin }: ConsentPage): PageContent {
  switch (origin) {
    case 'operator':
      return 'The operator of this service has registered this app.'
    case 'document':
      return html`This app is described by <strong>${new URL(authorization.client).host}</strong>.`
    case 'itself':
      return html`<strong>Unverified:</strong> this app has registered itself. Its name is not checked.`
    default:
      return origin satisfies never
  }
}

function destinationText({ authorization, schemes }: ConsentPage): PageContent {
  const { name, redirectUri } = authorization
  const { host, protocol } = new URL(redirectUri)
  const caution = `Allow it only if you have just started ${name} yourself.`
  switch (classifyRedirect(redirectUri, schemes)) {
    case 'https':
      return html`Your browser will then go to <strong>${host}</strong>.`
    case 'loopback':
      return html`Your browser will then go to a program on this computer
(<strong>${host}</strong>). ${caution}`
    default:
      return html`Your browser will then open an app (<strong>${protocol}</strong>). ${caution}`
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

function scopeList(scopes: readonly string[], words: ScopeWords): PageContent {
  const items = scopes.map((name) =>
    Object.hasOwn(words, name)
      ? html`<li>${words[name]} <small>(<code>${name}</code>)</small></li>`
      : html`<li><code>${name}</code></li>`,
  )
  return html`<ul>${items}</ul>`
}

/** Returns the list of the apps that a user has allowed, each with a form that withdraws it. */
export function consentsPage(consents: readonly Consent[], words: ScopeWords): Page {
  const items = consents.map(({ client, name, scopes, allowedAtSeconds, redirectUri }) => {
    const day = new Date(allowedAtSeconds * 1000).toISOString().slice(0, 10)
    return html`<section><h2>${name}</h2>
<p><small>${client}<br>${redirectUri}<br>allowed on ${day}</small></p>
${scopeList(scopes, words)}
<form method="post" action="${CONSENTS_PATH}">
<input type="hidden" name="client" value="${client}">
<button>Withdraw</button></form></section>`
  })
  return {
    title: 'Apps with access',
    content:
      items.length === 0
        ? 'You have allowed no app.'
        : html`<p>An app that you withdraw loses its access at once.</p>${items}`,
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

const returnLink = (url: string | undefined): PageContent =>
  url === undefined
    ? ''
    : html`<p>You have not allowed this app before. If you trust it: <a href="${url}" rel="noreferrer">return to ${placeOf(url)}</a>.</p>`

/** Returns the page for a request that must not be answered at its redirect URI. */
export function refusalPage(refusal: Refusal): Page {
  const { status, error, description, headers = {}, returnTo, lacksPermissions } = refusal
  const isOutage = status >= 500
  if (lacksPermissions)
    return {
      title: 'Your account has no access',
      status: 403,
      headers,
      content: html`<p>Your account has none of the permissions that this app needs. Ask the operator of this
service for a role, then start again in the app. <code>${error}</code></p>${returnLink(returnTo)}`,
    }
  return {
    title: isOutage ? 'Not possible now' : 'This request is not valid',
    status: status as NonNullable<Page['status']>,
    headers,
    content: html`<p>${description} <code>${error}</code></p>
<p>${isOutage ? 'Reload this page in a moment.' : 'The app that sent you here has made a mistake, or the link is old. Start again in the app.'}</p>
${returnLink(returnTo)}`,
  }
}
