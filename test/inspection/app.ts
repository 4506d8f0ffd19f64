/** An app behind `limitBody` and `inspect`, whose handler keeps what reached it. */
import { Hono } from 'hono'
import { type BodyVariables, bodyOf } from '../../src/context.ts'
import { type InspectOptions, inspect } from '../../src/middleware/inspect.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { problemHandler } from '../../src/problem.ts'
import type { Principal } from '../../src/tokens/principal.ts'

const MAX_BODY_BYTES = 4_194_304

/** Guards `/anything`; `principal` is who asks, as `authenticate` would have set it. */
export function inspected(options: InspectOptions, principal: Principal | null = null) {
  /** What the handler was given, query and body. */
  const reached: { readonly query: string; readonly body: Uint8Array }[] = []
  /** Why requests were refused, precisely. */
  const reasons: string[] = []
  const app = new Hono<{ Variables: BodyVariables & { principal: Principal | null } }>()
  const toProblem = problemHandler()
  app.onError((error, c) => {
    const denial =
      'denial' in error ? (error.denial as { code: string; check?: string }) : undefined
    reasons.push(denial?.check ?? denial?.code ?? error.name)
    return toProblem(error, c)
  })
  app.use(limitBody({ maxBytes: MAX_BODY_BYTES }))
  app.use(async (c, next) => {
    c.set('principal', principal)
    await next()
  })
  app.all('/anything', inspect(options), async (c) => {
    const body = await new Response(bodyOf(c)).bytes()
    reached.push({ query: new URL(c.req.url).search, body })
    return c.text('reached')
  })

  async function send(query: string, body?: BodyInit, type?: string, encoding?: string) {
    const headers = new Headers()
    if (type !== undefined) headers.set('Content-Type', type)
    if (encoding !== undefined) headers.set('Content-Encoding', encoding)
    const response = await app.request(`/anything${query}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      ...(body !== undefined && { body }),
    })
    return { status: response.status, text: await response.text() }
  }
  return { send, reached, reasons }
}
