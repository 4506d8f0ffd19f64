/** The pages of refused navigations: what happened, and what the person can do. */
import { html } from 'hono/html'
import type { Problem } from '../../../problems/problem.ts'
import { SIGN_OUT_PATH, signInPath } from '../return-path.ts'
import type { PageContent } from './page.ts'

export interface RefusedNavigation {
  readonly status: number
  /** Undefined: a defect of the gateway, or of its settings. */
  readonly problem: Problem | undefined
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
  readonly title: string
  readonly text: PageContent
  /** What leads on. */
  readonly links?: PageContent
}

/** Returns the title and the content of the page. It contains no more facts than the problem document. */
export function deniedPage(refused: RefusedNavigation) {
  const { title, text, links = '' } = explain(refused)
  const id = refused.requestId
  const reference =
    id === undefined
      ? ''
      : html`<p><small>If you ask for help, name this request: <code>${id}</code></small></p>`
  return { title, content: html`<p>${text}</p>${links}${reference}` }
}

function explain(refused: RefusedNavigation): Explanation {
  const { status, problem, account, path } = refused
  switch (problem?.code) {
    case 'insufficient_permission':
      return {
        title: 'Your account has no access to this page',
        text: html`${signedInAs(account)}Ask the operator of this service for access, or use another account.`,
        links: otherAccount(path),
      }
    case 'banned':
      return {
        title: 'Access is blocked',
        text: 'This service refuses requests of your account or of your network for now. Its operator can end this.',
      }
    case 'rate_limited':
      return { title: 'Too many requests', text: waitFirst(refused), links: tryAgain(refused) }
    case 'sign_in_required':
      return {
        title: 'You are not signed in',
        text: 'Your session in this browser has ended, and nothing was changed.',
        links: html`<p><a href="${signInPath({ returnPath: path })}">Sign in</a></p>`,
      }
    case 'insufficient_user_authentication':
      return {
        title: 'A stronger sign-in is needed',
        text: 'What you wanted to do needs a stronger or a more recent sign-in. Nothing was changed.',
        links: html`<p><a href="${signInPath({ returnPath: path, prompt: 'login' })}">Sign in again</a></p>`,
      }
    case 'cross_origin_request':
      return {
        title: 'The request was refused',
        text: 'It came from a page of another site, and nothing was changed.',
      }
  }
  switch (status) {
    case 400:
      return { title: 'This link is not valid', text: 'A part of the address is wrong.' }
    case 401:
      return {
        title: 'This page is for programs',
        text: 'It needs a token, which a browser does not send.',
      }
    case 403:
      return {
        title: 'The request was refused',
        text: signedInAs(account),
        links: otherAccount(path),
      }
    case 404:
      return {
        title: 'This page does not exist',
        text: 'The address may have a typing error, or the page was removed.',
      }
    case 405:
      return { title: 'This page cannot do that', text: 'Go back, and open the page again.' }
    case 429:
      return { title: 'Too many requests', text: waitFirst(refused), links: tryAgain(refused) }
    case 502:
    case 503:
    case 504:
      return {
        title: 'Not available at the moment',
        text: waitFirst(refused),
        links: tryAgain(refused),
      }
  }
  if (status >= 500)
    return {
      title: 'Something went wrong',
      text: 'The fault is not yours. Its cause is in the log of this service.',
    }
  return {
    title: 'The request was not accepted',
    text: problem?.detail ?? 'Go back, and try again.',
  }
}

const signedInAs = (account: string | undefined): PageContent =>
  account === undefined ? '' : html`You are signed in as <strong>${account}</strong>. `

const otherAccount = (path: string): PageContent =>
  html`<ul><li><a class="choice" href="${signInPath({ returnPath: path, prompt: 'select_account' })}">Use another account</a></li>
<li><a class="choice" href="${SIGN_OUT_PATH}">Sign out</a></li></ul>`

const SECONDS = /^\d{1,9}$/

function waitFirst({ retryAfter }: RefusedNavigation): string {
  if (retryAfter === null || !SECONDS.test(retryAfter)) return 'Try again in a moment.'
  const seconds = Number(retryAfter)
  if (seconds < 120) return `Try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}.`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120
    ? `Try again in ${minutes} minutes.`
    : `Try again in ${Math.ceil(minutes / 60)} hours.`
}

const tryAgain = ({ path, isRepeatable }: RefusedNavigation): PageContent =>
  isRepeatable ? html`<p><a class="choice" href="${path}">Try again</a></p>` : ''
