/** Every text of the pages that people see comes from the tables of texts. */
import { html } from 'hono/html'
import { expect, test } from 'vitest'
import { Denied, Unavailable } from '../../../src/errors.ts'
import {
  type ConsentPage,
  consentPage,
  consentsPage,
  refusalPage,
} from '../../../src/features/authorization-code/routes/consent-pages.ts'
import { ENGLISH as CONSENT } from '../../../src/features/authorization-code/routes/english.ts'
import { german } from '../../../src/features/languages/german.ts'
import { deniedPage } from '../../../src/features/sign-in/pages/denied-page.ts'
import {
  chooserPage,
  sessionsPage,
  signedOutPage,
  signOutPage,
} from '../../../src/features/sign-in/pages/pages.ts'
import { errorPage } from '../../../src/features/sign-in/pages/refusal-page.ts'
import { ENGLISH as SIGN_IN } from '../../../src/features/sign-in/rendering/english.ts'
import {
  DEFAULT_LANGUAGE,
  mistakesInTexts,
  type PageLanguage,
} from '../../../src/features/sign-in/rendering/language.ts'
import type { Page } from '../../../src/features/sign-in/rendering/page.ts'
import type { ActiveSession } from '../../../src/features/sign-in/sessions.ts'
import type { Check } from '../../../src/problems/checks.ts'

/** What an attacker or a provider writes. The pages show it as it is. */
const DATA = '<b>data&"\'</b>'

const session: ActiveSession = {
  id: 'one',
  createdAtSeconds: 1_700_000_000,
  activeAtSeconds: 1_700_000_900,
  userAgent: DATA,
  city: DATA,
  country: 'FR',
}
const authorization: ConsentPage['authorization'] = {
  kind: 'undecided',
  browserSession: 'x',
  client: 'https://app.example/client.json',
  name: DATA,
  redirectUri: 'https://app.example/callback',
  challenge: 'x',
  scopes: ['orders:read', DATA],
  audiences: ['https://api.example', DATA],
  refresh: false,
}
const consent: ConsentPage = {
  authorization,
  origin: 'document',
  handle: DATA,
  account: DATA,
  path: '/oauth/authorize?x=1',
  publicUrl: 'https://api.example',
  words: { 'orders:read': DATA },
  schemes: ['cursor'],
}
const refused = {
  status: 403,
  problem: undefined,
  account: DATA,
  path: '/a?<b>',
  isRepeatable: true,
  retryAfter: '90',
  requestId: DATA,
}
const denied = (status: number, problem?: string, retryAfter: string | null = '90') => ({
  ...refused,
  status,
  retryAfter,
  problem: problem === undefined ? undefined : { code: problem as 'banned', detail: DATA },
})
const refusal = { status: 400, error: 'invalid_request', description: DATA }

const REFUSED: readonly Check<'sign_in_refused'>[] = [
  ...(['acr', 'auth_time_missing', 'auth_time_old', 'auth_time_unusable', 'browser'] as const),
  ...(['callback', 'code', 'content_type', 'hand_over', 'hand_over_code'] as const),
  ...(['hand_over_host', 'no_session', 'provider_unknown', 'query', 'session_unknown'] as const),
  ...(['state', 'state_unknown', 'state_used', 'provider_access_denied'] as const),
  ...(['provider_server_error', 'provider_invalid_client', 'error', 'user_info_sub'] as const),
  ...(['id_token_required_claim', 'id_token_nonce', 'logout_token_form'] as const),
]

type Create = (language: PageLanguage) => Pick<Page, 'title' | 'content'>
/** Every page, in every form. */
const PAGES: Readonly<Record<string, Create>> = {
  chooser: (one) => chooserPage(one, [{ name: DATA, logo: DATA, issuer: DATA }], '/oauth/sign-in?'),
  signOut: (one) => signOutPage(one, []),
  signedOut: signedOutPage,
  sessions: (one) =>
    sessionsPage(
      one,
      [
        session,
        { ...session, id: 'two', userAgent: 'Firefox/1 (Windows NT 10)' },
        { ...session, id: 'three', userAgent: 'Firefox/1' },
        { ...session, id: 'four', userAgent: 'Windows NT 10' },
      ],
      'two',
    ),
  consent: (one) => consentPage(one, consent),
  ofOperator: (one) => consentPage(one, { ...consent, origin: 'operator' }),
  ofItself: (one) =>
    consentPage(one, {
      ...consent,
      origin: 'itself',
      authorization: { ...authorization, redirectUri: 'http://127.0.0.1:9/x' },
    }),
  ofApp: (one) =>
    consentPage(one, { ...consent, authorization: { ...authorization, redirectUri: 'cursor:/x' } }),
  apps: (one) =>
    consentsPage(
      one,
      [
        {
          client: DATA,
          name: DATA,
          scopes: [DATA],
          allowedAtSeconds: 1_700_000_000,
          redirectUri: DATA,
        } as never,
      ],
      {},
    ),
  noApps: (one) => consentsPage(one, [], {}),
  refusal: (one) => refusalPage(one, { ...refusal, returnTo: 'https://app.example/x' }),
  outage: (one) => refusalPage(one, { ...refusal, status: 503 }),
  noAccess: (one) => refusalPage(one, { ...refusal, lacksPermissions: true }),
  loginOutage: (one) => errorPage(one, new Unavailable('redis', 'timeout')),
  loginLimited: (one) =>
    errorPage(one, new Denied({ code: 'rate_limited', limit: 'x', retryAfterSeconds: 1 } as never)),
  loginOther: (one) => errorPage(one, new Denied({ code: 'not_found' })),
  ...Object.fromEntries(
    REFUSED.flatMap((check) => {
      const error = new Denied({ code: 'sign_in_refused', check } as never)
      return [
        [check, (one: PageLanguage) => errorPage(one, error, { provider: DATA })],
        [`${check} of an unnamed provider`, (one: PageLanguage) => errorPage(one, error)],
      ]
    }),
  ),
  ...Object.fromEntries(
    [
      denied(403, 'insufficient_permission'),
      denied(403, 'banned'),
      denied(429, 'rate_limited'),
      denied(401, 'sign_in_required'),
      denied(401, 'insufficient_user_authentication'),
      denied(403, 'cross_origin_request'),
      ...[400, 401, 403, 404, 405, 429, 500, 502, 503].map((status) => denied(status)),
      denied(503, 'x', null),
      denied(503, 'x', '7200'),
      denied(422, 'invalid_body'),
    ].map((each) => [
      `${each.status} ${each.problem?.code ?? ''} ${each.retryAfter}`,
      (one: PageLanguage) => deniedPage(one, each),
    ]),
  ),
}

const marked = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(texts).map((name) => [name, mark(texts[name] ?? '')]))
/** Puts marks around each part of a text, so that they enclose no value of a slot. */
const mark = (text: string) =>
  text.replaceAll(/(\{\w+\})|([^{}]+)/g, (_, slot, part) => slot ?? `⟦${part}⟧`)
const MARKED: PageLanguage = {
  tag: 'fr',
  texts: { signIn: marked(SIGN_IN), authorizationCode: marked(CONSENT) },
}

async function render(create: Create, language: PageLanguage): Promise<string> {
  const { title, content } = create(language)
  return String(await html`<h1>${title}</h1>${content}`)
}

/** The texts that a person sees, without those that protocols have in English only. */
const visible = (page: string): readonly string[] =>
  page
    .replaceAll(/<time [^>]*>[^<]*<\/time>|<code>[^<]*<\/code>|<p lang="en">.*?<\/p>/gs, '')
    .split(/<[^>]*>/)
    .map((text) => text.trim())
    .filter((text) => text !== '')

/** Values that stand between texts. */
const VALUES =
  /&lt;b&gt;data&amp;&quot;&#39;&lt;\/b&gt;|(?:https:\/\/)?(?:api|app)\.example|127\.0\.0\.1:9|cursor:|Firefox(?:\/1)?|\(?Windows(?: NT 10\)?)?|France|90[^a-z]secondes|2[^a-z]heures|[\s,()]/g

test.each(Object.keys(PAGES))('the page %s has no text outside of the tables', async (name) => {
  const page = await render(PAGES[name] as Create, MARKED)
  const others = visible(page)
    .map((text) => text.replaceAll(/⟦[^⟧]*⟧/g, '').replaceAll(VALUES, ''))
    .filter((text) => text !== '')
  expect(others).toEqual([])
})

test('every text of the tables is on a page, and so is the German one', async () => {
  const found = await Promise.all(Object.values(PAGES).map((create) => render(create, MARKED)))
  const all = found.join('')
  const texts = [...Object.entries(SIGN_IN), ...Object.entries(CONSENT)]
  // The links are of the frame of the pages, see the tests of the branding.
  const missing = texts.filter(([name, text]) => {
    if (name.startsWith('links.')) return false
    return !mark(text)
      .split(/\{\w+\}/)
      .every((part) => all.includes(part))
  })
  expect(missing).toEqual([])
})

test.each(Object.keys(PAGES))('the page %s has no English text in German', async (name) => {
  const shown = visible(await render(PAGES[name] as Create, german)).join(' ')
  const parts = Object.values({ ...SIGN_IN, ...CONSENT }).flatMap((text) => text.split(/\{\w+\}/))
  const english = parts.map((part) => part.trim()).filter((part) => part.length >= 7)
  expect(english.filter((part) => shown.includes(part))).toEqual([])
})

test('German has every text, with the same slots', () => {
  const { signIn, authorizationCode } = german.texts
  expect(Object.keys(signIn ?? {})).toEqual(Object.keys(SIGN_IN))
  expect(Object.keys(authorizationCode ?? {})).toEqual(Object.keys(CONSENT))
  expect([...mistakesInTexts({ ...signIn }, SIGN_IN)]).toEqual([])
  expect([...mistakesInTexts({ ...authorizationCode }, CONSENT)]).toEqual([])
})

/** A language without any text. */
const EMPTY: PageLanguage = { tag: 'fr', texts: {} }

test.each(Object.keys(PAGES))(
  'the page %s marks every text that is not in its language',
  async (name) => {
    const page = await render(PAGES[name] as Create, EMPTY)
    const unmarked = page
      .replaceAll(/<time [^>]*>[^<]*<\/time>|<code>[^<]*<\/code>|<p lang="en">.*?<\/p>/gs, '')
      .replaceAll(/<span lang="">[^<]*<\/span>/g, '')
      .replaceAll(/<span lang="en">[^<]*<\/span>/g, '')
      .replaceAll(/<small>.*?<\/small>/gs, '')
      .split(/<[^>]*>/)
      .map((text) => text.replaceAll(VALUES, ''))
      .filter((text) => text !== '')
    expect(unmarked).toEqual([])
  },
)

test('names and words of the policy are in no language on a page that is not English', async () => {
  const words = { 'orders:read': 'See your orders' }
  const page = (language: PageLanguage) =>
    render((one) => consentPage(one, { ...consent, words }), language)
  const marked = '<span lang="">See your orders</span>'
  expect(await page(german)).toContain(marked)
  expect(await page(DEFAULT_LANGUAGE)).not.toContain('<span')
  const own = { ...german, texts: { ...german.texts, scopes: words } }
  expect(await page(own)).not.toContain(marked)
})

test.each(Object.keys(PAGES))('the page %s shows hostile data as text', async (name) => {
  const page = await render(PAGES[name] as Create, DEFAULT_LANGUAGE)
  expect(page).not.toContain('<b>')
  expect(page).not.toMatch(/="[^"]*<b>/)
})
