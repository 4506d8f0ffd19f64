/** The choice of a language, over HTTP on both runtimes, and what the start says about a file of texts. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { german } from '../../../src/features/languages/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { ENGLISH } from '../../../src/features/sign-in/rendering/english.ts'
import {
  type PageLanguage,
  reportMissing,
} from '../../../src/features/sign-in/rendering/language.ts'
import { RUNTIMES, type SignInGateway, startGateway } from '../sign-in/gateway.ts'
import { createUserAgent } from '../sign-in/user-agent.ts'

const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }
/** A file of a user, with one text. */
const portuguese: PageLanguage = {
  tag: 'pt-BR',
  texts: { signIn: { 'denied.404.title': 'Esta página não existe' } },
}
const arabic: PageLanguage = { tag: 'ar', direction: 'rtl', texts: {} }

/** `Accept-Language`, and the language of the page. */
const CHOICES: readonly [string | undefined, string][] = [
  [undefined, 'en'],
  ['de', 'de'],
  ['de-AT,de;q=0.9,en;q=0.8', 'de'],
  ['DE-de', 'de'],
  ['en-US,en;q=0.9,de;q=0.8', 'en'],
  ['fr, de;q=0.5', 'de'],
  ['fr', 'en'],
  ['de;q=0, en', 'en'],
  ['en;q=0.1, de;q=0.9', 'de'],
  ['pt', 'pt-BR'],
  ['*', 'en'],
  ['de;q=9', 'en'],
  ['constructor, __proto__', 'en'],
  [`de${',x'.repeat(300)}`, 'en'],
]

describe.each(RUNTIMES)('the language of the pages on %s', (runtime) => {
  let gateway: SignInGateway
  beforeAll(async () => {
    gateway = await startGateway({
      runtime,
      definition: {
        roles: ['reader'],
        branding: { links: { privacy: '/privacy' }, languages: [german, portuguese, arabic] },
      },
    })
  })
  afterAll(() => gateway?.close())

  async function open(path: string, acceptLanguage: string | undefined) {
    const fields = acceptLanguage === undefined ? {} : { 'accept-language': acceptLanguage }
    const headers = { ...NAVIGATION, ...fields }
    const response = await createUserAgent().send(gateway.url + path, { headers })
    return { response, text: await response.text() }
  }

  test.each(CHOICES)('for Accept-Language %s is %s', async (accepted, tag) => {
    const { response, text } = await open('/nothing', accepted)
    expect(response.status).toBe(404)
    expect(text).toContain(`<html lang="${tag}">`)
    expect(response.headers.get('vary')?.toLowerCase()).toContain('accept-language')
  })

  test('is German on the whole page, with times and numbers in its words', async () => {
    const { text } = await open('/nothing', 'de')
    expect(text).toContain('<h1>Diese Seite gibt es nicht</h1>')
    expect(text).toContain('>Datenschutz</a>')
  })

  test('falls back to English for a text that a file does not have', async () => {
    const { text } = await open('/nothing', 'pt')
    expect(text).toContain('<h1>Esta página não existe</h1>')
    expect(text).toContain(`<span lang="en">${ENGLISH['denied.404.text']}</span>`)
    expect(text).toContain('<title>Esta página não existe</title>')
    expect((await open('/nothing', 'de')).text).not.toMatch(/ lang="(?!de)/)
  })

  test('marks an English title, with the direction of its script', async () => {
    const { text } = await open('/nothing', 'ar')
    const title = ENGLISH['denied.404.title']
    expect(text).toContain(`<title lang="en">${title}</title>`)
    expect(text).toContain(`<h1><span lang="en" dir="ltr">${title}</span></h1>`)
  })

  test('has the direction of its script', async () => {
    expect((await open('/nothing', 'ar')).text).toContain('<html lang="ar" dir="rtl">')
  })

  test('is that of ui_locales, before that of the browser', async () => {
    const query = 'iss=https://unknown.example&ui_locales='
    const { text } = await open(`/oauth/sign-in?${query}fr+de`, 'en')
    expect(text).toContain('<h1>Dieser Link ist ungültig</h1>')
  })

  test('does not change a problem document', async () => {
    const response = await fetch(`${gateway.url}/nothing`, { headers: { 'accept-language': 'de' } })
    expect(await response.json()).toMatchObject({ code: 'not_found' })
    expect(response.headers.get('vary') ?? '').not.toMatch(/accept-language/i)
  })
})

/** Files with a mistake, and what the start says. */
const MISTAKES: readonly [string, object, RegExp][] = [
  [
    'an unknown text',
    { tag: 'fr', texts: { signIn: { 'signIn.titles': 'x' } } },
    /texts\.signIn.*signIn\.titles.*no page has this text; did you mean "signIn\.title"\?/,
  ],
  [
    'a missing slot',
    { tag: 'fr', texts: { signIn: { 'wait.time': 'Encore une fois.' } } },
    /wait\.time.*must contain \{time\}/,
  ],
  [
    'a slot that is not closed',
    { tag: 'fr', texts: { signIn: { 'wait.time': 'Encore {time} {' } } },
    /wait\.time.*must contain \{time\}/,
  ],
  [
    'a slot that the page does not fill',
    { tag: 'fr', texts: { signIn: { 'page.back': 'Retour {name}' } } },
    /page\.back.*must have no braces/,
  ],
  [
    'a text that is not a language tag',
    { tag: 'french!', texts: {} },
    /must be a language tag such as de/,
  ],
  ['texts of an unknown feature', { tag: 'fr', texts: { signin: {} } }, /signin/],
]

test.each(MISTAKES)('the start refuses a language with %s', (_name, language, message) => {
  expect(() => signIn({ branding: { languages: [language as PageLanguage] } })).toThrow(message)
})

test('the start names the first missing text of a language, and how many more there are', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  try {
    reportMissing([german, portuguese], 'signIn', ENGLISH)
    const others = Object.keys(ENGLISH).length - 2
    expect(warn.mock.calls).toEqual([
      [
        `languages: pt-BR has no text signIn["page.back"] and ${others} more; pages show it in English`,
      ],
    ])
  } finally {
    warn.mockRestore()
  }
})
