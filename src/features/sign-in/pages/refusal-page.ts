/** The pages of refused logins. Each names its own cause, and what the user can do. */
import { html } from 'hono/html'
import { Denied, Unavailable } from '../../../errors.ts'
import { problemOf } from '../../../middleware/problem-handler.ts'
import type { Check } from '../../../problems/checks.ts'
import { isOperatorsFault } from '../provider-call.ts'
import type { PageContent } from '../rendering/content.ts'
import { ENGLISH } from '../rendering/english.ts'
import { inUnknownLanguage, type PageLanguage, textsOf } from '../rendering/language.ts'
import type { Page } from '../rendering/page.ts'
import { HOME_PATH, type SignInDemand, signInPath } from '../return-path.ts'
import { requestReference } from './denied-page.ts'

/** The login that was refused, as far as it is known. */
export interface RefusedLogin {
  /** The page that the user wanted. */
  readonly returnPath?: string | undefined
  readonly provider?: string | undefined
}

type Cause = Pick<Page, 'title' | 'content'> & { readonly status?: 403 }

const sayIn = textsOf('signIn', ENGLISH)

export const signInAgain = (
  language: PageLanguage,
  demand: SignInDemand = { returnPath: HOME_PATH },
) =>
  html`<p><a class="choice main" href="${signInPath(demand)}">${sayIn(language)('signIn.link')}</a></p>`

/** Names no more of a failure than a problem document would, except for the cause of a refused login. */
export function errorPage(
  language: PageLanguage,
  error: Error,
  login?: RefusedLogin,
  requestId?: string,
): Page {
  const page = describeError(language, error, login)
  return { ...page, content: html`${page.content}${requestReference(language, requestId)}` }
}

function describeError(language: PageLanguage, error: Error, login: RefusedLogin = {}): Page {
  const { status, headers = {} } = problemOf(error)
  const say = sayIn(language)
  const shown = { status: status as NonNullable<Page['status']>, headers }
  const again = signInAgain(language, { returnPath: login.returnPath ?? HOME_PATH })
  if (error instanceof Unavailable)
    return {
      ...shown,
      title: say('login.outage.title'),
      content: html`<p>${say('login.outage.text')}</p>
<p>${say('login.outage.wait')}</p>${again}`,
    }
  const denial = error instanceof Denied ? error.denial : undefined
  if (denial?.code === 'rate_limited')
    return {
      ...shown,
      title: say('denied.limited.title'),
      content: html`<p>${say('wait.minute')}</p>${again}`,
    }
  if (denial?.code !== 'sign_in_refused')
    return { ...shown, title: say('denied.refused.title'), content: again }
  return { ...shown, ...describeCause(language, denial.check, login) }
}

const OF_PROVIDER = 'provider_'
const OF_ID_TOKEN = 'id_token_'
const OF_LOGOUT_TOKEN = 'logout_token_'
/** Rules of the policy about accounts. */
const RULES: readonly Check<'sign_in_refused'>[] = [
  'id_token_required_claim',
  'id_token_refused_claim',
]

/** Returns the page for a check that failed. */
function describeCause(
  language: PageLanguage,
  check: Check<'sign_in_refused'>,
  { returnPath = HOME_PATH, provider: name }: RefusedLogin,
): Cause {
  const say = sayIn(language)
  const provider = name === undefined ? say('login.provider') : inUnknownLanguage(language, name)
  const noHelp = say('login.noHelp')
  const again = signInAgain(language, { returnPath })
  const page = (
    title: PageContent,
    text: PageContent,
    status?: 403,
    link: PageContent = '',
  ): Cause => ({ title, content: html`<p>${text}</p>${link}`, ...(status && { status }) })
  const retry = (title: PageContent, text: PageContent, status?: 403): Cause =>
    page(title, text, status, again)
  switch (check) {
    case 'provider_access_denied':
      return retry(say('denied.session.title'), say('login.canceled.text'), 403)
    case 'acr':
      return retry(say('denied.stronger.title'), say('login.weak.text'), 403)
    case 'auth_time_missing':
      return page(
        say('login.age.title'),
        html`${say('login.ageMissing.text', { provider })} ${noHelp}`,
        403,
      )
    case 'auth_time_unusable':
      return page(
        say('login.age.title'),
        html`${say('login.ageUnusable.text', { provider })} ${noHelp}`,
        403,
      )
    case 'auth_time_old':
      return page(
        say('login.old.title'),
        say('login.old.text', { provider }),
        403,
        signInAgain(language, { returnPath, prompt: 'login' }),
      )
    case 'browser':
      return retry(say('login.elsewhere.title'), say('login.elsewhere.text'))
    case 'state':
    case 'state_unknown':
    case 'state_used':
    case 'code':
    case 'hand_over_code':
      return retry(say('login.expired.title'), say('login.expired.text'))
    case 'query':
    case 'hand_over':
    case 'hand_over_host':
    case 'provider_unknown':
      return retry(say('denied.400.title'), say('login.link.text'))
    case 'no_session':
      return retry(say('denied.session.title'), say('signedOut.text'))
    case 'session_unknown':
      return page(say('login.unknownSession.title'), say('login.unknownSession.text'))
  }
  if (RULES.includes(check))
    return retry(say('login.account.title'), say('login.account.text', { provider }), 403)
  if (check.startsWith(OF_PROVIDER)) {
    const code = check.slice(OF_PROVIDER.length)
    const answer = say('login.provider.text', { provider, cause: html`<code>${code}</code>` })
    const title = say('login.provider.title')
    return isOperatorsFault(code) ? page(title, html`${answer} ${noHelp}`) : retry(title, answer)
  }
  const cause = say('page.cause', { cause: html`<code>${check}</code>` })
  if (check.startsWith(OF_LOGOUT_TOKEN) || check === 'content_type')
    return page(say('login.request.title'), cause)
  const answer = check.startsWith(OF_ID_TOKEN)
    ? say('login.idToken.text', { provider })
    : say('login.answer.text', { provider })
  return retry(say('login.unverified.title'), html`${answer} ${cause}`)
}
