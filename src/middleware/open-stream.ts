/** Watches the response of a request while it is open. */
import type { Context, MiddlewareHandler } from 'hono'
import { queryKey } from '../access/relations/rule.ts'
import type { ProblemError } from '../errors.ts'
import { replaceResponse } from '../http/replaced-response.ts'
import type { OpenStream, OpenStreams, StreamTerms } from '../streams/open-streams.ts'
import type { StreamRuntime } from '../streams/stream-runtime.ts'
import { callerOf, clientAddressOf, type GatewayVariables } from './context.ts'
import type { Readmission } from './readmit.ts'

export interface OpenStreamVariables {
  /** Set by `proxy` for an authenticated caller. */
  'portcullis.openStream': OpenStream
}

export interface StreamWatchOptions {
  readonly streams: OpenStreams
  readonly terms: StreamTerms
  /** Checks a request with a relation. Default: only revocations and bans are checked. */
  readonly readmission?: Readmission | undefined
  /** Called once after a stream was ended. */
  readonly ended: (c: Context, error: ProblemError) => void
}

/** Methods that change nothing (RFC 9110 section 9.2.1). */
const SAFE_METHODS = new Set(['GET', 'HEAD'])
/** A response that does not end by itself. */
const EVENT_STREAM = /^text\/event-stream[ \t]*(?:;|$)/i

export const isSafe = (method: string): boolean => SAFE_METHODS.has(method)

/**
 * Returns the response, which breaks off when its stream must end. A request with effects was executed,
 * so its answer has time to reach the client.
 */
export function watchAnswer(
  response: Response,
  stream: OpenStream,
  method: string,
  watch: StreamRuntime['watch'],
): Response {
  if (EVENT_STREAM.test(response.headers.get('Content-Type') ?? '')) stream.finishes = false
  else if (!isSafe(method)) stream.answered()
  return watch(response, stream, method)
}

/** JSON of `c.json()` is complete when its handler returns. JSON lines are a stream. */
const COMPLETE = /^application\/(?:json|[\w.-]+\+json)[ \t]*(?:;|$)/i

export const isComplete = (headers: Headers): boolean =>
  COMPLETE.test(headers.get('Content-Type') ?? '') && !headers.has('Transfer-Encoding')

/** Creates the stage around handlers that respond themselves. Their responses break off as those of origins do. */
export const watchHandlers = (
  watchStream: StreamWatch,
  watch: StreamRuntime['watch'],
): MiddlewareHandler =>
  async function watchHandlers(c, next) {
    const stream = watchStream(c)
    await next()
    if (stream === undefined || isComplete(c.res.headers)) return
    const response = watchAnswer(c.res, stream, c.req.method, watch)
    if (response !== c.res) replaceResponse(c, response)
  }

/** Returns the response that a stage gives in place of the origin. It ends with the rights of its caller. */
export type WatchOwn = (c: Context, response: Response) => Response

export const watchOwn =
  (watchStream: StreamWatch, watch: StreamRuntime['watch']): WatchOwn =>
  (c: Context<{ Variables: Partial<GatewayVariables> }>, response) => {
    // Before its admission, a request has no rights that could end.
    if (!c.get('portcullis.principal') || isComplete(response.headers)) return response
    const stream = watchStream(c)
    return stream === undefined ? response : watchAnswer(response, stream, c.req.method, watch)
  }

/** Returns the stream of a request that is admitted now. Undefined: nothing ends it. */
export type StreamWatch = (c: Context) => OpenStream | undefined

/** Creates the watch of one route. The streams of anonymous callers are not ended. */
export function createStreamWatch(options: StreamWatchOptions): StreamWatch {
  const { streams, terms, readmission, ended } = options
  return function watchStream(c: Context<{ Variables: GatewayVariables }>) {
    const principal = callerOf(c, 'proxy')
    if (principal === null) return undefined
    const query = readmission && c.get('portcullis.relation')?.query
    const relation = query === undefined || 'code' in query ? undefined : queryKey(query)
    const stream = streams.add({
      principal,
      address: clientAddressOf(c, 'proxy'),
      terms,
      readmit:
        readmission === undefined || relation === undefined
          ? undefined
          : { relation, check: () => readmission(c, undefined) },
      onEnd: (error) => ended(c, error),
    })
    c.set('portcullis.openStream' as never, stream as never)
    return stream
  }
}
