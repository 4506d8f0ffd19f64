/** The stage that answers a navigation to no page of the console with a page. */
import type { MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import { ProblemError } from '../../errors.ts'
import { replaceResponse } from '../../http/replaced-response.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { CONSOLE_PATH, type ConsolePage, reference, renderConsole } from './layout.ts'

/** Browsers send `Sec-Fetch-Mode` only to HTTPS and to this machine. */
const MODES = [undefined, 'navigate']
const PROBLEM_TYPE = 'application/problem+json'
/** Fields that the page has in another form. */
const OF_THE_DOCUMENT = ['content-type', 'content-length', 'cache-control']

/**
 * Creates the stage. Below `/-/console`, it takes the place of a problem document where a browser shows the response:
 * also of a browser that does not say so, because no program asks for HTML there. `/-/console/` leads to the overview.
 */
export function strayNavigations(origin: string): MiddlewareHandler {
  return async function strayNavigations(c, next) {
    const { path } = c.req
    if (path !== CONSOLE_PATH && !path.startsWith(`${CONSOLE_PATH}/`)) return next()
    await next()
    const { error, res: refusal } = c
    if (!(error instanceof ProblemError) || c.req.method === 'HEAD') return
    if (refusal.headers.get('Content-Type') !== PROBLEM_TYPE) return
    if (!/\btext\/html\b/i.test(c.req.header('Accept') ?? '')) return
    if (!MODES.includes(c.req.header('Sec-Fetch-Mode'))) return
    const { status, code, detail } = error.problem
    const headers = [...refusal.headers].filter(([name]) => !OF_THE_DOCUMENT.includes(name))
    const { pathname, search } = new URL(c.req.url)
    if (status === 404 && c.req.method === 'GET' && pathname === `${CONSOLE_PATH}/`) {
      const to = { ...Object.fromEntries(headers), ...NO_STORE, Location: CONSOLE_PATH + search }
      return replaceResponse(c, new Response(null, { status: 303, headers: to }))
    }
    const page = {
      title: status === 404 ? 'The console has no such page' : `Refused: ${status}`,
      status: status as NonNullable<ConsolePage['status']>,
      headers: Object.fromEntries(headers),
      content: html`<p>${detail}</p><p>Code: <code>${code}</code></p>${reference(c)}<p><a href="${CONSOLE_PATH}">Overview</a></p>`,
    }
    replaceResponse(c, await renderConsole(c, page, [], undefined, origin))
  }
}
