/** HTML pages of the gateway: plain, without scripts and external resources. */
import type { Context } from 'hono'
import { html, raw } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { NO_STORE } from '../../../http/response-headers.ts'
import { type Branding, formatStyle, type PageTheme } from '../page-theme.ts'

/** Text that is escaped, or the result of hono's `html`. */
export type PageContent = string | HtmlEscapedString | Promise<HtmlEscapedString>

export interface Page {
  readonly title: string
  /** What follows the heading. */
  readonly content: PageContent
  readonly status?: ContentfulStatusCode
  readonly headers?: Readonly<Record<string, string>>
  /** Origins to which a form of the page may lead, besides that of the gateway. */
  readonly formTargets?: readonly string[]
}

export type RenderPage = (c: Context, page: Page) => Promise<Response>

const LINKS = [
  ['privacy', 'Privacy'],
  ['terms', 'Terms'],
  ['support', 'Support'],
] as const

/**
 * Creates the function that renders pages. They allow only their own style, by its hash, and pictures of
 * this host. No other page can frame them, and their forms lead only to this gateway and to
 * `formTargets`.
 */
export function createPages(theme: PageTheme, branding: Branding = {}): RenderPage {
  const style = formatStyle(theme)
  const { name, logo, links = {} } = branding
  const header =
    name === undefined && logo === undefined
      ? ''
      : html`<header>${logo && html`<img src="${logo}" alt="">`}${name && html`<span>${name}</span>`}</header>
`
  const listed = LINKS.flatMap(([key, text]) => {
    const href = links[key]
    return href === undefined ? [] : [html`<a href="${href}" rel="noreferrer">${text}</a>`]
  })
  const footer = listed.length === 0 ? '' : html`<footer>${listed}</footer>`
  // Not escaped: the hash is of exactly this text. The theme is checked, and contains no `<`.
  const sheet = raw(style)
  let source: string | undefined

  async function styleSource(): Promise<string> {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
    source = `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
    return source
  }

  return async function renderPage(c, page) {
    const { title, content, status = 200, headers = {}, formTargets = [] } = page
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
    return c.html(
      html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}${name && ` - ${name}`}</title><style>${sheet}</style></head>
<body>${header}<main><h1>${title}</h1>
${content}
</main>${footer}</body></html>
`,
      status,
      fields,
    )
  }
}
