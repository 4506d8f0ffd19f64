/** The pages of the sign-in. */
import { html } from 'hono/html'
import type { Provider } from '../provider.ts'
import type { PageContent } from '../rendering/content.ts'
import { ENGLISH } from '../rendering/english.ts'
import {
  formatCountry,
  formatTime,
  inUnknownLanguage,
  type PageLanguage,
  textsOf,
} from '../rendering/language.ts'
import type { Page } from '../rendering/page.ts'
import { HOME_PATH, SESSIONS_PATH, SIGN_OUT_PATH } from '../return-path.ts'
import type { ActiveSession } from '../sessions.ts'
import { identifyBrowser } from './browser-name.ts'
import { signInAgain } from './refusal-page.ts'

const sayIn = textsOf('signIn', ENGLISH)

type ShownProvider = Pick<Provider, 'name' | 'logo' | 'issuer'>

export function chooserPage(
  language: PageLanguage,
  providers: readonly ShownProvider[],
  path: string,
): Page {
  const say = sayIn(language)
  return {
    title: say('signIn.title'),
    content: html`<p>${say('signIn.choose')}</p>
<ul>${providers.map(({ name, logo, issuer }) => {
      const location = `${path}&${new URLSearchParams({ iss: issuer })}`
      return html`<li><a class="choice" href="${location}">${logo && html`<img src="${logo}" alt="">`}${inUnknownLanguage(language, name)}</a></li>`
    })}</ul>`,
  }
}

export function signOutPage(language: PageLanguage, formTargets: readonly string[]): Page {
  const say = sayIn(language)
  return {
    formTargets,
    title: say('signOut.title'),
    content: html`<p>${say('signOut.text')}</p>
<form method="post" action="${SIGN_OUT_PATH}"><button class="main">${say('signOut.button')}</button></form>
<p><a href="${HOME_PATH}">${say('page.back')}</a></p>`,
  }
}

export function signedOutPage(language: PageLanguage): Page {
  const say = sayIn(language)
  return {
    title: say('signedOut.title'),
    content: html`<p>${say('signedOut.text')}</p>${signInAgain(language)}`,
  }
}

/** This browser comes first, then the newest login. */
const newestFirst = (sessions: readonly ActiveSession[], current: string | undefined) =>
  sessions.toSorted(
    (one, other) =>
      Number(other.id === current) - Number(one.id === current) ||
      other.createdAtSeconds - one.createdAtSeconds,
  )

function nameBrowser(language: PageLanguage, userAgent: string | undefined): PageContent {
  const say = sayIn(language)
  const { browser, system } = identifyBrowser(userAgent)
  if (browser === undefined)
    return system === undefined ? say('browser.unknown') : say('browser.system', { system })
  return system === undefined ? browser : say('browser.on', { browser, system })
}

function describePlace(language: PageLanguage, { city, country }: ActiveSession): PageContent {
  const named = country === undefined ? undefined : formatCountry(language, country)
  const place = [city, named].filter((part) => part !== undefined).join(', ')
  return place === '' ? '' : html`<br>${sayIn(language)('sessions.place', { place })}`
}

export function sessionsPage(
  language: PageLanguage,
  sessions: readonly ActiveSession[],
  current: string | undefined,
): Page {
  const say = sayIn(language)
  const items = newestFirst(sessions, current).map((session) => {
    const { id, createdAtSeconds, activeAtSeconds, userAgent } = session
    const isHere = id === current
    const active = isHere
      ? say('sessions.activeNow')
      : say('sessions.active', { time: formatTime(language, activeAtSeconds) })
    return html`<li class="item">
<form method="post" action="${SESSIONS_PATH}"><input type="hidden" name="session" value="${id}">
<h2>${nameBrowser(language, userAgent)}${isHere ? html` <span class="mark">${say('sessions.here')}</span>` : ''}</h2>
<p>${active}<br>${say('sessions.signedIn', { time: formatTime(language, createdAtSeconds) })}${describePlace(language, session)}</p>
${userAgent && html`<details><summary>${say('sessions.details')}</summary><p><small>${userAgent}</small></p></details>`}
<button>${say('sessions.end')}</button></form></li>`
  })
  return {
    title: say('sessions.title'),
    content: html`<p>${say('sessions.text')}</p>
<ul>${items}</ul><p><a href="${SIGN_OUT_PATH}">${say('signOut.title')}</a></p>`,
  }
}
