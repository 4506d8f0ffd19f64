/** The frame of the console's pages: navigation, style and security headers. */
import type { Context } from 'hono'
import { html, raw } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import { NO_STORE } from '../../http/response-headers.ts'
import { visible } from '../../problems/visible.ts'
import { STYLE } from './style.ts'

export type Markup = HtmlEscapedString | Promise<HtmlEscapedString>

export const CONSOLE_PATH = '/-/console'
/** A page of the console, so that a form leads nowhere else. */
export const BACK = /^\/-\/console(?:[/?][\x21-\x7e]*)?$/
export const SCRIPT_PATH = `${CONSOLE_PATH}/script.js`
export const COPY_SCRIPT_PATH = `${CONSOLE_PATH}/copy.js`
/** `1`: the page loads itself again. */
export const LIVE_PARAMETER = 'live'
export const TAIL_PATH = `${CONSOLE_PATH}/decisions/tail`
export const OVERVIEW_STREAM_PATH = `${CONSOLE_PATH}/overview/stream`

/** Sentences that say what an action has done. */
export type Notice = readonly string[]

export interface ConsolePage {
  readonly title: string
  /** The item of the navigation that is marked. */
  readonly at?: string
  readonly content: Markup | string
  readonly status?: 200 | 400 | 401 | 403 | 404 | 405 | 413 | 422 | 429 | 500 | 503
  readonly headers?: Readonly<Record<string, string>>
  /** The path of the stream that the script of the page reads. Default: the page has no script. */
  readonly stream?: string
  /** The page is loaded again after this time. */
  readonly refreshSeconds?: number | undefined
  /** What an action has done. */
  readonly notice?: Notice | undefined
  /** Whether the page has a text to copy, for which it loads a script. Default false. */
  readonly copies?: boolean
}

export interface Visitor {
  readonly subject: string
  readonly issuer: string
  readonly name?: string | undefined
  readonly tenant?: string | undefined
}

export interface NavigationItem {
  readonly name: string
  /** Below {@link CONSOLE_PATH}. */
  readonly path: string
}

// Not escaped: the hash is of exactly this text.
const sheet = raw(STYLE)
let source: string | undefined

async function styleSource(): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(STYLE))
  source = `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
  return source
}

/**
 * Renders a page. It has no inline script, and most pages have none. It loads nothing from other hosts, no other page
 * can frame it, and its forms lead only to this gateway. `origin` is that of the gateway.
 */
export async function renderConsole(
  c: Context,
  {
    title,
    at,
    content,
    status = 200,
    headers = {},
    refreshSeconds,
    stream,
    notice,
    copies = false,
  }: ConsolePage,
  navigation: readonly NavigationItem[],
  visitor: Visitor | undefined,
  origin: string,
): Promise<Response> {
  const scripts = [
    ...(stream === undefined ? [] : [SCRIPT_PATH]),
    ...(copies ? [COPY_SCRIPT_PATH] : []),
  ]
  const policy = [
    "default-src 'none'",
    `style-src ${source ?? (await styleSource())}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    // With their paths: other scripts of this origin may be those of an application behind the gateway.
    ...(scripts.length === 0
      ? []
      : [`script-src ${scripts.map((path) => origin + path).join(' ')}`]),
    ...(stream === undefined ? [] : [`connect-src ${origin}${stream}`]),
  ]
  const page = await html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${notice === undefined ? '' : 'Done: '}${title} - Portcullis</title><style>${sheet}</style>${scripts.map(
    (path) => html`<script src="${path}" defer></script>`,
  )}</head>
<body><a class="skip" href="#main">Skip to the content</a>
<header><a class="brand" href="${CONSOLE_PATH}">Portcullis</a>
<nav aria-label="Console"><ul>${navigation.map(
    ({ path, name }) =>
      html`<li><a href="${CONSOLE_PATH}${path}"${name === at ? raw(' aria-current="page"') : ''}>${name}</a></li>`,
  )}</ul></nav>
${visitor && who(visitor)}</header>
<main id="main" tabindex="-1">${notice && noticeBox(notice)}<h1>${title}</h1>
${content}
</main></body></html>
`
  return c.html(shown(String(page)), status, {
    ...NO_STORE,
    'Content-Security-Policy': policy.join('; '),
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    ...(refreshSeconds !== undefined && { Refresh: String(refreshSeconds) }),
    ...headers,
  })
}

const noticeBox = (lines: Notice): Markup =>
  html`<div class="card done" role="status">${lines.map((line) => html`<p>${line}</p>`)}</div>`

/** A tag, whose attributes keep their values; or text, without the line ends and tabs between tags. */
const PARTS = /<[^<>]*>|[^<\t\n\r]+/g

/** Escapes characters of text that people would not see, such as those that hide or reverse a part of it. */
export const shown = (page: string): string =>
  page.replace(PARTS, (part) => (part.startsWith('<') ? part : visible(part)))

const who = ({ name, subject, issuer, tenant }: Visitor) =>
  html`<p class="who"><span title="${visible(`${subject} at ${issuer}`)}">${name ?? subject}</span>${
    tenant === undefined ? '' : html` <span class="tag">${tenant}</span>`
  } <a href="/oauth/sign-out">Sign out</a></p>`

/** What a person names who asks for help. */
export const reference = (c: Context): Markup =>
  html`<p>Request: <code>${c.get('portcullis.requestId') as string}</code></p>`

/** Returns a path of the console with a query. Empty values are left out. */
export function pathTo(
  path: string,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const values = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') values.set(name, value)
  return values.size === 0 ? CONSOLE_PATH + path : `${CONSOLE_PATH}${path}?${values}`
}

/** Tables with more columns need a wider box: in a narrower one, each row is a block, with the names of its columns. */
const sizeOf = (columns: number): string =>
  columns > 5 ? 'wide' : columns > 3 ? 'medium' : columns > 2 ? 'small' : 'least'

/** Renders a table. In a narrow box, each row is a block. */
export const table = (
  label: string,
  columns: readonly string[],
  rows: readonly (readonly (Markup | string | number)[])[],
  empty = 'None.',
): Markup =>
  rows.length === 0
    ? html`<p class="empty">${empty}</p>`
    : html`<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table class="${sizeOf(columns.length)}">
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`<tr>${cells.map((cell, at) => cellOf(columns[at], cell))}</tr>`)}</tbody>
</table></div>`

const cellOf = (column: string | undefined, cell: Markup | string | number): Markup =>
  column ? html`<td data-column="${column}">${cell}</td>` : html`<td>${cell}</td>`

/** Renders a time for people: UTC, without the day if that is clear from the column. */
export const when = (time: string): Markup =>
  html`<time datetime="${time}">${time.slice(0, 19).replace('T', ' ')}</time>`
