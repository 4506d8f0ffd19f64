/** An app behind `limitBody` and `inspect` with a handler that records what reached it. */
import { Hono } from 'hono'
import type { Principal } from '../../src/access/principal.ts'
import { type BodyVariables, bodyOf, type ObservedVariables } from '../../src/middleware/context.ts'
import { type InspectOptions, inspect } from '../../src/middleware/inspect.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'

const MAX_BODY_BYTES = 4_194_304

/**
 * Guards `/anything` and the paths below it. `principal` is the caller that `authenticate` would
 * have set.
 */
export function inspected(options: InspectOptions, principal: Principal | null = null) {
  /** The query and body of each request that reached the handler. */
  const reached: { readonly query: string; readonly body: Uint8Array }[] = []
  /** The observed refusals of each admitted request. */
  const observed: (readonly string[] | undefined)[] = []
  /** The precise reasons of refusals. */
  const reasons: string[] = []
  const app = new Hono<{
    Variables: BodyVariables &
      Partial<ObservedVariables> & { 'portcullis.principal': Principal | null }
  }>()
  const toProblem = problemHandler()
  app.onError((error, c) => {
    const denial =
      'denial' in error
        ? (error.denial as { code: string; check?: string; signature?: string })
        : undefined
    reasons.push(denial?.check ?? denial?.signature ?? denial?.code ?? error.name)
    return toProblem(error, c)
  })
  app.use(limitBody({ maxBytes: MAX_BODY_BYTES }))
  app.use(async (c, next) => {
    c.set('portcullis.principal', principal)
    await next()
  })
  app.all('/anything/*', inspect(options), async (c) => {
    observed.push(c.get('portcullis.observed'))
    const body = await new Response(bodyOf(c)).bytes()
    reached.push({ query: new URL(c.req.url).search, body })
    return c.text('reached')
  })

  /** Sends a request. `query` may start with further path segments. */
  async function send(
    query: string,
    body?: BodyInit,
    type?: string,
    encoding?: string,
    others: Readonly<Record<string, string>> = {},
  ) {
    const headers = new Headers(others)
    if (type !== undefined) headers.set('Content-Type', type)
    if (encoding !== undefined) headers.set('Content-Encoding', encoding)
    const response = await app.request(`/anything${query}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      ...(body !== undefined && { body, duplex: 'half' as const }),
    })
    return { status: response.status, text: await response.text() }
  }
  return { send, reached, reasons, observed }
}
