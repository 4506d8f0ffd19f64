/** Connections of an open load, and the checks of its responses. */
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { isRight, isShed, type Question } from './questions.ts'

const TIMEOUT_MS = 10_000
/** Shorter than workerd's idle timeout for connections of 5 s. */
const IDLE_MS = 2_000
const MAX_SHOWN = 5

/** A gateway and the requests to it, used in turn. */
export interface OpenTarget {
  /** Scheme, authority and path prefix. */
  readonly url: string
  readonly questions: readonly Question[]
}

export interface OpenClientOptions {
  readonly targets: readonly OpenTarget[]
  readonly maxOutstanding: number
  /** Counts 503 responses separately instead of failing. Default false. */
  readonly mayShed?: boolean
}

export interface OpenClient {
  /** Sends the next request of a target. Calls `onEnd` when it has a response or has failed. */
  send(target: number, onEnd: (isRight: boolean) => void): void
  /**
   * Closes the connections. Throws if a response was wrong or missing. Returns the 503 responses,
   * by code.
   */
  close(): Readonly<Record<string, number>>
}

/**
 * Creates the client. It keeps its connections open and uses the most recently used one, so that no
 * more than necessary are open. Like proxies and libraries, it repeats a GET once if a kept
 * connection was closed without a response (RFC 9112 section 9.3.1).
 */
export function createOpenClient(options: OpenClientOptions): OpenClient {
  const { targets, maxOutstanding, mayShed = false } = options
  const agent = new Agent({
    keepAlive: true,
    scheduling: 'lifo',
    timeout: IDLE_MS,
    maxSockets: maxOutstanding,
    maxFreeSockets: maxOutstanding,
  })
  const requests = targets.map(requestsOf)
  const wrong = new Map<string, number>()
  const shed: Record<string, number> = {}

  function judge({ question, url }: Prepared, status: number, body: string): boolean {
    if (isRight(question, status, body)) return true
    const code = mayShed && isShed(status, body) ? codeOf(body) : undefined
    if (code !== undefined) shed[code] = (shed[code] ?? 0) + 1
    else count(url, status === question.status ? 'with another body' : `with status ${status}`)
    return false
  }

  function count(url: string, what: string): void {
    const key = `${what} from ${url}`
    wrong.set(key, (wrong.get(key) ?? 0) + 1)
  }

  function ask(asked: Prepared, onEnd: (isRight: boolean) => void, isRepeated = false): void {
    let isDone = false
    const end = (isRight: boolean) => {
      if (!isDone) onEnd(isRight)
      isDone = true
    }
    const outgoing = request({ ...asked.target, agent, timeout: TIMEOUT_MS }, (incoming) =>
      readAnswer(incoming, (body) => {
        if (body === undefined) count(asked.url, 'incomplete')
        end(body !== undefined && judge(asked, incoming.statusCode ?? 0, body))
      }),
    )
    outgoing.on('timeout', () => outgoing.destroy(new Error('timed out')))
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      const isDropped = outgoing.reusedSocket && error.code === 'ECONNRESET'
      if (isDropped && asked.question.method === 'GET' && !isRepeated)
        return ask(asked, onEnd, true)
      count(asked.url, `failed (${error.code ?? error.message})`)
      end(false)
    })
    outgoing.end(asked.question.body)
  }

  return {
    send: (target, onEnd) => ask((requests[target] as () => Prepared)(), onEnd),
    close() {
      agent.destroy()
      const seen = [...wrong].slice(0, MAX_SHOWN).map(([what, times]) => `${times} ${what}`)
      if (seen.length > 0) throw new Error(`wrong answers: ${seen.join(', ')}`)
      return shed
    },
  }
}

interface Prepared {
  readonly url: string
  readonly target: RequestOptions
  readonly question: Question
}

/** Returns a function that returns the requests of a target in turn, endlessly. */
function requestsOf({ url, questions }: OpenTarget): () => Prepared {
  const { hostname: host, port, pathname } = new URL(url)
  const prefix = pathname === '/' ? '' : pathname
  const prepared = questions.map((question): Prepared => {
    const { method, path, headers, body } = question
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const target = { host, port, method, path: prefix + path, headers: { ...headers, ...length } }
    return { url, question, target }
  })
  let next = 0
  return () => prepared[next++ % prepared.length] as Prepared
}

/** Reads a body. Calls `onEnd` with undefined if it is incomplete. */
function readAnswer(incoming: IncomingMessage, onEnd: (body: string | undefined) => void): void {
  let body = ''
  incoming.setEncoding('utf8')
  incoming.on('data', (chunk: string) => {
    body += chunk
  })
  incoming.on('end', () => onEnd(body))
  incoming.on('error', () => onEnd(undefined))
}

/** Returns the code of a problem document (RFC 9457). */
function codeOf(body: string): string | undefined {
  try {
    const { code } = Object(JSON.parse(body)) as { readonly code?: unknown }
    return typeof code === 'string' ? code : undefined
  } catch {
    return undefined
  }
}
