/** The connections of an open load, and how its answers are judged. */
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { Load, LoadRequest } from './load.ts'

const TIMEOUT_MS = 10_000
/** Before workerd ends an idle connection, which it does after 5 s. */
const IDLE_MS = 2_000
const MAX_SHOWN = 5

export interface OpenClientOptions
  extends Pick<Load, 'url' | 'method' | 'requests' | 'expectBody'> {
  readonly maxOutstanding: number
  /** Counts answers with status 503 apart instead of refusing them. Default false. */
  readonly mayShed?: boolean
}

export interface OpenClient {
  /** Sends the next of the requests; tells once it is answered, or will not be. */
  send(onEnd: (isRight: boolean) => void): void
  /** Throws if an answer was wrong or did not come; else returns those with 503, by their code. */
  close(): Readonly<Record<string, number>>
}

/**
 * Keeps its connections and takes the one used last, so that no more of them are open than are
 * needed. Like proxies and libraries, it repeats a GET once that a kept connection has dropped
 * unanswered (RFC 9112 section 9.3.1).
 */
export function createOpenClient(options: OpenClientOptions): OpenClient {
  const { url, method, requests, expectBody, maxOutstanding, mayShed = false } = options
  const { hostname, port, pathname, search } = new URL(url)
  const agent = new Agent({
    ...{ keepAlive: true, scheduling: 'lifo', timeout: IDLE_MS },
    ...{ maxSockets: maxOutstanding, maxFreeSockets: maxOutstanding },
  })
  const target = { agent, host: hostname, port, path: pathname + search, method }
  const prepared = requests.map((each) => ({ ...each, headers: headersOf(each) }))
  const wrong = new Map<string, number>()
  const shed: Record<string, number> = {}
  let next = 0

  function isRight(
    { status, body }: Answer,
    { isRight: judge }: Pick<LoadRequest, 'isRight'>,
  ): boolean {
    if (
      status === 200 &&
      (expectBody === undefined || body === expectBody) &&
      judge?.(body) !== false
    )
      return true
    const code = status === 503 && mayShed ? codeOf(body) : undefined
    if (code !== undefined) shed[code] = (shed[code] ?? 0) + 1
    else count(status === 200 ? 'with another body' : `with status ${status}`)
    return false
  }

  function count(what: string): void {
    wrong.set(what, (wrong.get(what) ?? 0) + 1)
  }

  function ask(chosen: (typeof prepared)[number], onEnd: (isRight: boolean) => void): void {
    const { headers, body } = chosen
    const outgoing = request({ ...target, headers, timeout: TIMEOUT_MS }, (incoming) =>
      readAnswer(incoming, (answer) => {
        if (answer === undefined) count('broken off')
        onEnd(answer !== undefined && isRight(answer, chosen))
      }),
    )
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', ({ code = 'failed' }: NodeJS.ErrnoException) => {
      if (outgoing.reusedSocket && code === 'ECONNRESET' && method === 'GET')
        return ask(chosen, onEnd)
      count(code)
      onEnd(false)
    })
    outgoing.end(body)
  }

  return {
    send: (onEnd) => ask(prepared[next++ % prepared.length] as (typeof prepared)[number], onEnd),
    close() {
      agent.destroy()
      const seen = [...wrong].slice(0, MAX_SHOWN).map(([what, times]) => `${times} ${what}`)
      if (seen.length > 0) throw new Error(`wrong answers from ${url}: ${seen.join(', ')}`)
      return shed
    },
  }
}

interface Answer {
  readonly status: number
  readonly body: string
}

/** Tells undefined where the answer breaks off. */
function readAnswer(incoming: IncomingMessage, onEnd: (answer: Answer | undefined) => void): void {
  let body = ''
  incoming.setEncoding('utf8')
  incoming.on('data', (chunk: string) => {
    body += chunk
  })
  incoming.on('end', () => onEnd({ status: incoming.statusCode ?? 0, body }))
  incoming.on('error', () => onEnd(undefined))
}

function headersOf({ headers, body }: LoadRequest): OutgoingHttpHeaders {
  return body === undefined ? headers : { ...headers, 'content-length': Buffer.byteLength(body) }
}

/** Of a problem document (RFC 9457). */
function codeOf(body: string): string | undefined {
  try {
    const { code } = Object(JSON.parse(body)) as { readonly code?: unknown }
    return typeof code === 'string' ? code : undefined
  } catch {
    return undefined
  }
}
