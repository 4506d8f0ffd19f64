/** The pages of the sign-in. */
import { html } from 'hono/html'
import type { Provider } from '../provider.ts'
import { HOME_PATH, SESSIONS_PATH, SIGN_OUT_PATH } from '../return-path.ts'
import type { ListedSession } from '../session-store.ts'
import { describeBrowser } from './browser-name.ts'
import type { Page } from './page.ts'
import { signInAgain } from './refusal-page.ts'

export function chooserPage(providers: readonly Provider[], path: string): Page {
  return {
    title: 'Sign in',
    content: html`<p>Choose how you sign in.</p>
<ul>${providers.map(({ name, logo, issuer }) => {
      const location = `${path}&${new URLSearchParams({ iss: issuer })}`
      return html`<li><a class="choice" href="${location}">${logo && html`<img src="${logo}" alt="">`}${name}</a></li>`
    })}</ul>`,
  }
}

export const signOutPage = (formTargets: readonly string[]): Page => ({
  formTargets,
  title: 'Sign out',
  content: html`<p>This ends your session in this browser.</p>
<form method="post" action="${SIGN_OUT_PATH}"><button>Sign out</button></form>
<p><a href="${HOME_PATH}">Back</a></p>`,
})

export const signedOutPage = (): Page => ({
  title: 'You are signed out',
  content: html`<p>Your session in this browser has ended.</p>${signInAgain()}`,
})

const dateOf = (seconds: number) =>
  new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')

/** This browser comes first. */
const newestFirst = (sessions: readonly ListedSession[], current: string | undefined) =>
  sessions.toSorted(
    (one, other) =>
      Number(other.id === current) - Number(one.id === current) ||
      other.createdAtSeconds - one.createdAtSeconds,
  )

export const sessionsPage = (
  sessions: readonly ListedSession[],
  current: string | undefined,
): Page => ({
  title: 'Your sessions',
  content: html`<p>You are signed in with these browsers. End a session that you do not know.</p>
<ul>${newestFirst(sessions, current).map(
    ({ id, createdAtSeconds, userAgent }) => html`<li class="item">
<form method="post" action="${SESSIONS_PATH}"><input type="hidden" name="session" value="${id}">
<h2>${describeBrowser(userAgent)}${id === current ? ' (this browser)' : ''}</h2>
<p><small>Signed in at ${dateOf(createdAtSeconds)} UTC<br>${userAgent}</small></p>
<button>End this session</button></form></li>`,
  )}</ul><p><a href="${SIGN_OUT_PATH}">Sign out</a></p>`,
})
