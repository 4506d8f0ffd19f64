/** The common part of Workers that serve one handler for each first segment of the path. */

/** The path cannot start before this position of a URL. */
const SCHEME_LENGTH = 'http://'.length

export type Handler<Env> = (
  request: Request,
  env: Env,
  context: ExecutionContext,
) => Response | Promise<Response>

export const pathStart = (url: string): number => url.indexOf('/', SCHEME_LENGTH)

/** Creates the Worker. `create` returns the handler of a segment; undefined: 404. */
export function bySegment<Env>(
  create: (segment: string, env: Env) => Handler<Env> | undefined,
): ExportedHandler<Env> {
  const handlers = new Map<string, Handler<Env>>()
  return {
    fetch(request, env, context) {
      const { url } = request
      const start = pathStart(url)
      const segment = url.slice(start + 1, url.indexOf('/', start + 1))
      let handler = handlers.get(segment)
      if (handler === undefined) {
        handler = create(segment, env)
        if (handler === undefined) return new Response('no such variant', { status: 404 })
        handlers.set(segment, handler)
      }
      return handler(request, env, context)
    },
  }
}

/** Forwards a request: the minimum work of a proxy. */
export function passthrough(
  request: Request,
  { ORIGIN_URL }: { readonly ORIGIN_URL: string },
): Promise<Response> {
  const { url } = request
  return fetch(ORIGIN_URL + url.slice(pathStart(url)), request)
}
