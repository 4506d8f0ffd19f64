/** The pages of refused navigations: what happened, and what the person can do. */
import { html } from 'hono/html'
import type { Problem } from '../../../problems/problem.ts'
import type { PageContent } from '../rendering/content.ts'
import { ENGLISH } from '../rendering/english.ts'
import {
  DEFAULT_LANGUAGE,
  formatDuration,
  type PageLanguage,
  textsOf,
} from '../rendering/language.ts'
import { SIGN_OUT_PATH, signInPath } from '../return-path.ts'

export interface RefusedNavigation {
  readonly status: number
  /** Undefined: a defect of the gateway, or of its settings. */
  readonly problem: Pick<Problem, 'code' | 'detail'> | undefined
  /** Who is signed in. */
  readonly account: string | undefined
  /** The path and query of the page. */
  readonly path: string
  /** Whether the person can load the page again without sending something twice. */
  readonly isRepeatable: boolean
  /** The text of `Retry-After`. */
  readonly retryAfter: string | null
  readonly requestId: string | undefined
}

interface Explanation {
  readonly title: PageContent
  readonly text: PageContent
  /** What leads on. */
  readonly links?: PageContent
}

const sayIn = textsOf('signIn', ENGLISH)
const SECONDS = /^\d{1,9}$/

/** Returns the title and the content of the page. It contains no more facts than the problem document. */
export function deniedPage(language: PageLanguage, refused: RefusedNavigation) {
  const { title, text, links = '' } = explain(language, refused)
  return {
    title,
    content: html`<p>${text}</p>${links}${requestReference(language, refused.requestId)}`,
  }
}

/** Returns what a person names who asks for help. */
export const requestReference = (language: PageLanguage, id: string | undefined): PageContent =>
  id === undefined
    ? ''
    : html`<p><small>${sayIn(language)('page.help', { id: html`<code>${id}</code>` })}</small></p>`

function explain(language: PageLanguage, refused: RefusedNavigation): Explanation {
  const { status, problem, account, path, isRepeatable, retryAfter } = refused
  const say = sayIn(language)

  const signedInAs =
    account === undefined
      ? ''
      : html`${say('denied.account', { account: html`<strong>${account}</strong>` })} `
  const otherAccount = () =>
    html`<ul><li><a class="choice main" href="${signInPath({ returnPath: path, prompt: 'select_account' })}">${say('signIn.otherAccount')}</a></li>
<li><a class="choice" href="${SIGN_OUT_PATH}">${say('signOut.title')}</a></li></ul>`
  const waitFirst = () =>
    retryAfter === null || !SECONDS.test(retryAfter)
      ? say('wait.moment')
      : say('wait.time', { time: formatDuration(language, Number(retryAfter)) })
  const tryAgain = () =>
    isRepeatable ? html`<p><a class="choice main" href="${path}">${say('wait.link')}</a></p>` : ''
  const tooMany = () => ({
    title: say('denied.limited.title'),
    text: waitFirst(),
    links: tryAgain(),
  })

  switch (problem?.code) {
    case 'insufficient_permission':
      return {
        title: say('denied.permission.title'),
        text: html`${signedInAs}${say('denied.permission.text')}`,
        links: otherAccount(),
      }
    case 'banned':
      return { title: say('denied.banned.title'), text: say('denied.banned.text') }
    case 'rate_limited':
      return tooMany()
    case 'sign_in_required':
      return {
        title: say('denied.session.title'),
        text: say('denied.session.text'),
        links: html`<p><a class="choice main" href="${signInPath({ returnPath: path })}">${say('signIn.link')}</a></p>`,
      }
    case 'insufficient_user_authentication':
      return {
        title: say('denied.stronger.title'),
        text: say('denied.stronger.text'),
        links: html`<p><a class="choice main" href="${signInPath({ returnPath: path, prompt: 'login' })}">${say('signIn.again')}</a></p>`,
      }
    case 'cross_origin_request':
      return { title: say('denied.refused.title'), text: say('denied.otherSite.text') }
  }
  switch (status) {
    case 400:
      return { title: say('denied.400.title'), text: say('denied.400.text') }
    case 401:
      return { title: say('denied.401.title'), text: say('denied.401.text') }
    case 403:
      return { title: say('denied.refused.title'), text: signedInAs, links: otherAccount() }
    case 404:
      return { title: say('denied.404.title'), text: say('denied.404.text') }
    case 405:
      return { title: say('denied.405.title'), text: say('denied.405.text') }
    case 429:
      return tooMany()
    case 502:
    case 503:
    case 504:
      return { title: say('denied.503.title'), text: waitFirst(), links: tryAgain() }
  }
  if (status >= 500) return { title: say('denied.500.title'), text: say('denied.500.text') }
  return {
    title: say('denied.other.title'),
    text: say('denied.other.text'),
    links: problem === undefined ? '' : inEnglish(html`<small>${problem.detail}</small>`),
  }
}

/** A text of a protocol, which has no other language. */
export const inEnglish = (text: PageContent): PageContent =>
  html`<p lang="${DEFAULT_LANGUAGE.tag}">${text}</p>`
