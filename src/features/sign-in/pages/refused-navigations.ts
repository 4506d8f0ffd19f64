/** The stage that answers a refused navigation with a page. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import { ProblemError } from '../../../errors.ts'
import { targetOf } from '../../../http/path.ts'
import type { GatewayVariables } from '../../../middleware/context.ts'
import { receivedHeaders } from '../../../middleware/request-headers.ts'
import { accountNameOf } from '../account-name.ts'
import { isShown } from '../navigation.ts'
import type { RenderPage } from '../rendering/page.ts'
import { returnPathIn } from '../return-path.ts'
import { deniedPage } from './denied-page.ts'

const PROBLEM_TYPE = 'application/problem+json'
/** Fields of the problem document that the page has in another form. */
const OF_THE_DOCUMENT = ['content-type', 'content-length', 'cache-control']

/**
 * Creates the stage, which comes before every stage that may refuse. It takes the place of the problem
 * document, with the same status and fields, where a browser shows the response to a person
 * (`Sec-Fetch-Mode: navigate`, and `Accept` names `text/html`). Everything else stays as it is: requests of scripts
 * and programs, responses of the origin, and pages of the gateway.
 */
export function refusedNavigations({ renderPage }: { renderPage: RenderPage }): MiddlewareHandler {
  return function refusedNavigations(c: Context<{ Variables: GatewayVariables }>, next) {
    return isShown(receivedHeaders(c)) ? answerPerson(c, next) : next()
  }

  async function answerPerson(c: Context<{ Variables: GatewayVariables }>, next: Next) {
    await next()
    const { error, res: refusal } = c
    if (error === undefined || refusal.headers.get('content-type') !== PROBLEM_TYPE) return
    const { status } = refusal
    const { method } = c.req
    const principal = c.get('portcullis.principal')
    const headers = Object.fromEntries(
      [...refusal.headers].filter(([name]) => !OF_THE_DOCUMENT.includes(name)),
    )
    const refused = {
      status,
      problem: error instanceof ProblemError ? error.problem : undefined,
      account: principal ? accountNameOf(principal) : undefined,
      path: returnPathIn(targetOf(c.req.url)),
      isRepeatable: method === 'GET' || method === 'HEAD',
      retryAfter: refusal.headers.get('retry-after'),
      requestId: c.get('portcullis.requestId'),
    }
    // Hono copies the headers of the old response to the new one.
    c.res = undefined
    const shown = await renderPage(c, (language) => ({
      ...deniedPage(language, refused),
      status: status as 403,
      headers,
    }))
    c.res = method === 'HEAD' ? new Response(null, shown) : shown
  }
}
