/** The pages of the sign-in. */
import { html } from 'hono/html'
import type { Provider } from '../provider.ts'
import { HOME_PATH, SESSIONS_PATH, SIGN_OUT_PATH } from '../return-path.ts'
import type { ListedSession } from '../session-store.ts'
import type { Page } from './page.ts'
import { signInAgain } from './refusal-page.ts'

export function chooserPage(providers: readonly Provider[], path: string): Page {
  return {
    title: 'Sign in',
    content: html`<p>Choose how you sign in.</p>
<ul>${providers.map(({ name, issuer }) => {
      const location = `${path}&${new URLSearchParams({ iss: issuer })}`
      return html`<li><a class="choice" href="${location}">${name}</a></li>`
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

export const sessionsPage = (
  sessions: readonly ListedSession[],
  current: string | undefined,
): Page => ({
  title: 'Your sessions',
  content: html`<ul>${sessions.map(
    ({ id, createdAtSeconds, userAgent = 'Unknown browser' }) => html`<li>
<form method="post" action="${SESSIONS_PATH}"><input type="hidden" name="session" value="${id}">
<p>${userAgent}<br><small>Signed in at ${dateOf(createdAtSeconds)} UTC${
      id === current ? '; this browser' : ''
    }</small></p>
<button>End this session</button></form></li>`,
  )}</ul><p><a href="${SIGN_OUT_PATH}">Sign out</a></p>`,
})
