/** A Worker that forwards each request to an origin behind breakers, and reports the result. */

import { Unavailable } from '../../../src/errors.ts'
import { createBreakers } from '../../../src/isolate/breakers.ts'
import { guardedOrigin } from '../../../src/origin/guarded-origin.ts'
import { createOrigin, type Origin } from '../../../src/origin/origin.ts'

interface Env {
  readonly ORIGIN_URL: string
}

let origin: Origin | undefined
const breakers = createBreakers({ alarm: () => undefined })

export default {
  async fetch(incoming: Request, { ORIGIN_URL }: Env): Promise<Response> {
    origin ??= guardedOrigin({ origin: createOrigin({ url: ORIGIN_URL }), watch: breakers.watch })
    const { pathname } = new URL(incoming.url)
    if (pathname === '/read-here') return new Response()
    if (pathname === '/states')
      return Response.json(breakers.list.map(({ target, state }) => [target, state()]))
    const timeoutMs = Number(incoming.headers.get('x-timeout-ms') ?? 5_000)
    const route = `${incoming.method} ${pathname}`
    try {
      const answer = await origin.send({
        incoming,
        headers: new Map<string, string>(),
        body: incoming.body,
        timeoutMs,
        route,
      })
      return new Response(answer.body, answer)
    } catch (error) {
      if (!(error instanceof Unavailable)) return new Response(String(error), { status: 500 })
      return new Response(`${error.fault}${error.shortCircuited ? ', short-circuited' : ''}`, {
        status: 503,
      })
    }
  },
}
