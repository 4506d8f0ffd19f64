/** HTML pages of the gateway: plain, without scripts and external resources. */
import type { Context } from 'hono'
import { html, raw } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { NO_STORE } from '../../../http/response-headers.ts'
import { fieldsOf, varyBy } from '../../../http/shared-caches.ts'
import type { PageContent } from './content.ts'
import { ENGLISH } from './english.ts'
import { languageOf, type PageLanguage, textsOf, withoutMark } from './language.ts'
import { type Branding, formatStyle, type PageTheme } from './page-theme.ts'

export interface Page {
  readonly title: PageContent
  /** What follows the heading. */
  readonly content: PageContent
  readonly status?: ContentfulStatusCode
  readonly headers?: Readonly<Record<string, string>>
  /** Origins to which a form of the page may lead, besides that of the gateway. */
  readonly formTargets?: readonly string[]
}

/** Renders a page in the language of the request. */
export type RenderPage = (c: Context, create: (language: PageLanguage) => Page) => Promise<Response>

const LINKS = ['privacy', 'terms', 'support'] as const
const sayIn = textsOf('signIn', ENGLISH)

/**
 * Creates the function that renders pages. They allow only their own style, by its hash, and pictures of
 * this host. No other page can frame them, and their forms lead only to this gateway and to
 * `formTargets`.
 */
export function createPages(theme: PageTheme, branding: Branding = {}): RenderPage {
  const style = formatStyle(theme)
  const { name, logo, links = {}, languages = [] } = branding
  const header =
    name === undefined && logo === undefined
      ? ''
      : html`<header>${logo && html`<img src="${logo}" alt="">`}${name && html`<span>${name}</span>`}</header>
`
  const listed = LINKS.filter((key) => links[key] !== undefined)
  const footerIn = (language: PageLanguage): PageContent =>
    listed.length === 0
      ? ''
      : html`<footer>${listed.map(
          (key) =>
            html`<a href="${links[key]}" rel="noreferrer">${sayIn(language)(`links.${key}`)}</a>`,
        )}</footer>`
  // Not escaped: the hash is of exactly this text. The theme is checked, and contains no `<`.
  const sheet = raw(style)
  let source: string | undefined

  async function styleSource(): Promise<string> {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
    source = `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
    return source
  }

  return async function renderPage(c, create) {
    const language = languageOf(c, languages)
    const { title, content, status = 200, headers = {}, formTargets = [] } = create(language)
    const { tag, direction } = language
    const tabTitle = withoutMark(title)
    const policy = [
      "default-src 'none'",
      `style-src ${source ?? (await styleSource())}`,
      "img-src 'self' data:",
      "base-uri 'none'",
      `form-action ${["'self'", ...formTargets].join(' ')}`,
      "frame-ancestors 'none'",
    ]
    const fields = {
      ...NO_STORE,
      'Content-Security-Policy': policy.join('; '),
      // With 'no-referrer', forms of the page would be sent with the origin `null`.
      'Referrer-Policy': 'same-origin',
      ...headers,
    }
    const response = await c.html(
      html`<!doctype html>
<html lang="${tag}"${direction && html` dir="${direction}"`}>
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title${tabTitle.isEnglish && html` lang="en"`}>${tabTitle.text}${name && ` - ${name}`}</title><style>${sheet}</style></head>
<body>${header}<main><h1>${title}</h1>
${content}
</main>${footerIn(language)}</body></html>
`,
      status,
      fields,
    )
    if (languages.length > 0) varyBy(fieldsOf(response.headers), ['Accept-Language'])
    return response
  }
}
