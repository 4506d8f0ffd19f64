/** The pages of the sign-in. */
import { html } from 'hono/html'
import { Denied, Unavailable } from '../../errors.ts'
import { problemOf } from '../../middleware/problem-handler.ts'
import type { Provider } from '../../sign-in/provider.ts'
import { HOME_PATH, SESSIONS_PATH, SIGN_OUT_PATH, signInPath } from '../../sign-in/return-path.ts'
import type { ListedSession } from '../../sign-in/session-store.ts'
import type { Page } from './page.ts'

const signInAgain = (returnPath = HOME_PATH) =>
  html`<p><a href="${signInPath({ returnPath })}">Sign in</a></p>`

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

/** Names no more of a failure than a problem document would. */
export function errorPage(error: Error): Page {
  const { status, headers = {} } = problemOf(error)
  const shown = { status: status as NonNullable<Page['status']>, headers }
  if (error instanceof Unavailable)
    return {
      ...shown,
      title: 'Sign-in is not available',
      content: html`<p>The sign-in does not work at the moment. Users who are signed in can go on.</p>
<p>Try again in a few seconds.</p>${signInAgain()}`,
    }
  const denial = error instanceof Denied ? error.denial : undefined
  if (denial?.code === 'rate_limited')
    return {
      ...shown,
      title: 'Too many requests',
      content: html`<p>Wait a minute, then try again.</p>${signInAgain()}`,
    }
  if (denial?.code !== 'sign_in_refused')
    return { ...shown, title: 'This did not work', content: signInAgain() }
  const { check } = denial
  if (check === 'provider_access_denied')
    return {
      ...shown,
      status: 403,
      title: 'You are not signed in',
      content: html`<p>The sign-in was canceled, or your account has no access.</p>${signInAgain()}`,
    }
  if (check === 'acr')
    return {
      ...shown,
      status: 403,
      title: 'A stronger sign-in is needed',
      content: html`<p>This page needs another kind of sign-in than the one that you used.</p>
${signInAgain()}`,
    }
  return {
    ...shown,
    title: 'The sign-in has expired',
    content: html`<p>It took too long, was used before, or was started in another browser. This
browser must accept cookies.</p>${signInAgain()}`,
  }
}
