/** The pages of refused logins. Each names its own cause, and what the user can do. */
import { html } from 'hono/html'
import { Denied, Unavailable } from '../../../errors.ts'
import { problemOf } from '../../../middleware/problem-handler.ts'
import type { Check } from '../../../problems/checks.ts'
import { isOperatorsFault } from '../provider-call.ts'
import { HOME_PATH, type SignInDemand, signInPath } from '../return-path.ts'
import type { Page, PageContent } from './page.ts'

/** The login that was refused, as far as it is known. */
export interface RefusedLogin {
  /** The page that the user wanted. */
  readonly returnPath?: string | undefined
  /** The name of the provider. */
  readonly provider?: string | undefined
}

type Cause = Pick<Page, 'title' | 'content'> & { readonly status?: 403 }

export const signInAgain = (demand: SignInDemand = { returnPath: HOME_PATH }) =>
  html`<p><a href="${signInPath(demand)}">Sign in</a></p>`

/** Names no more of a failure than a problem document would, except for the cause of a refused login. */
export function errorPage(error: Error, login: RefusedLogin = {}): Page {
  const { status, headers = {} } = problemOf(error)
  const shown = { status: status as NonNullable<Page['status']>, headers }
  const again = signInAgain({ returnPath: login.returnPath ?? HOME_PATH })
  if (error instanceof Unavailable)
    return {
      ...shown,
      title: 'Sign-in is not available',
      content: html`<p>You cannot sign in at the moment. Users who are already signed in are not affected.</p>
<p>Try again in a few seconds.</p>${again}`,
    }
  const denial = error instanceof Denied ? error.denial : undefined
  if (denial?.code === 'rate_limited')
    return {
      ...shown,
      title: 'Too many requests',
      content: html`<p>Wait a minute, then try again.</p>${again}`,
    }
  if (denial?.code !== 'sign_in_refused')
    return { ...shown, title: 'The request was refused', content: again }
  return { ...shown, ...describeCause(denial.check, login) }
}

const OF_PROVIDER = 'provider_'
const OF_ID_TOKEN = 'id_token_'
const OF_LOGOUT_TOKEN = 'logout_token_'
const NO_HELP =
  'Signing in again does not help. Ask the operator of this service to correct its settings.'
/** Rules of the policy about accounts. */
const RULES: readonly Check<'sign_in_refused'>[] = [
  'id_token_required_claim',
  'id_token_refused_claim',
]

/** Returns the page for a check that failed. */
function describeCause(
  check: Check<'sign_in_refused'>,
  { returnPath = HOME_PATH, provider }: RefusedLogin,
): Cause {
  const name = provider ?? 'The identity provider'
  const again = signInAgain({ returnPath })
  const page = (title: string, text: PageContent, status?: 403, link: PageContent = ''): Cause => ({
    title,
    content: html`<p>${text}</p>${link}`,
    ...(status && { status }),
  })
  const retry = (title: string, text: PageContent, status?: 403): Cause =>
    page(title, text, status, again)
  switch (check) {
    case 'provider_access_denied':
      return retry(
        'You are not signed in',
        'The sign-in was canceled, or your account has no access.',
        403,
      )
    case 'acr':
      return retry(
        'A stronger sign-in is needed',
        'This page needs a stronger method of sign-in than the one that you used.',
        403,
      )
    case 'auth_time_missing':
      return page(
        'The age of the sign-in is not known',
        `This page needs a recent sign-in, but ${name} does not say when you signed in. ${NO_HELP}`,
        403,
      )
    case 'auth_time_unusable':
      return page(
        'The age of the sign-in is not known',
        `This page needs a recent sign-in. The time that ${name} states cannot be used. ${NO_HELP}`,
        403,
      )
    case 'auth_time_old':
      return page(
        'A recent sign-in is needed',
        `This page needs a recent sign-in. ${name} says that you signed in too long ago.`,
        403,
        signInAgain({ returnPath, prompt: 'login' }),
      )
    case 'browser':
      return retry(
        'The sign-in was started elsewhere',
        'It was started in another browser, or this browser does not accept cookies.',
      )
    case 'state':
    case 'state_unknown':
    case 'state_used':
    case 'code':
    case 'hand_over_code':
      return retry('The sign-in has expired', 'It took too long, or was used before.')
    case 'query':
    case 'hand_over':
    case 'hand_over_host':
    case 'provider_unknown':
      return retry(
        'This link is not valid',
        'A parameter of the link is missing or wrong. Start the sign-in again.',
      )
    case 'no_session':
      return retry('You are not signed in', 'Your session in this browser has ended.')
    case 'session_unknown':
      return page('The session was not found', 'It has probably ended already.')
  }
  if (RULES.includes(check))
    return retry(
      'Your account has no access',
      `This service does not accept the account that you used at ${name}.`,
      403,
    )
  if (check.startsWith(OF_PROVIDER)) {
    const code = check.slice(OF_PROVIDER.length)
    const answer = html`${name} has refused the sign-in: <code>${code}</code>.`
    return isOperatorsFault(code)
      ? page('The provider has refused the sign-in', html`${answer} ${NO_HELP}`)
      : retry('The provider has refused the sign-in', answer)
  }
  if (check.startsWith(OF_LOGOUT_TOKEN) || check === 'content_type')
    return page('This request is not valid', html`Cause: <code>${check}</code>.`)
  const answered = check.startsWith(OF_ID_TOKEN) ? 'ID token' : 'answer'
  return retry(
    'The sign-in could not be verified',
    html`The ${answered} of ${name} was not accepted. Cause: <code>${check}</code>.`,
  )
}
