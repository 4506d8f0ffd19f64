/** Sends requests and returns their outcomes. It never throws. */
import { Agent, type IncomingMessage, request } from 'node:http'

/** Longer than every timeout of the gateway. */
const TIMEOUT_MS = 40_000
const MAX_SOCKETS = 1_024
/** Shorter than workerd's idle timeout for connections of 5 s. */
const IDLE_MS = 2_000

export interface Outgoing {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export interface Answer {
  /** 0: no response. */
  readonly status: number
  /** Code of a problem document or an OAuth error; empty otherwise. */
  readonly code: string
  readonly requestId: string
  /** The body, or the reason why there was no response. */
  readonly body: string
  /** True if the body was incomplete. */
  readonly isCut: boolean
}

const NO_ANSWER: Answer = { status: 0, code: '', requestId: '', body: '', isCut: false }

export interface Client {
  send(outgoing: Outgoing): Promise<Answer>
  close(): void
}

export interface ClientOptions {
  /** Maximum number of connections to each host. Default 1,024. */
  readonly maxSockets?: number
  /** Default 40,000. */
  readonly timeoutMs?: number
  /** Repeats a GET once on a dropped kept connection (RFC 9112 section 9.3.1). Default true. */
  readonly repeats?: boolean
}

/** Creates a client that reuses as few connections as possible. */
export function createClient(options: ClientOptions = {}): Client {
  const { maxSockets = MAX_SOCKETS, timeoutMs: timeout = TIMEOUT_MS, repeats = true } = options
  const agent = new Agent({
    keepAlive: true,
    maxSockets,
    maxFreeSockets: maxSockets,
    scheduling: 'lifo',
    timeout: IDLE_MS,
  })

  function send(sent: Outgoing, mayRepeat: boolean): Promise<Answer> {
    const { url, method, headers, body } = sent
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    return new Promise((resolve) => {
      // A repeat has a connection of its own: others that were kept may be closed as well.
      const outgoing = request(
        url,
        {
          agent: mayRepeat === repeats && agent,
          method,
          headers: { ...headers, ...length },
          timeout,
        },
        (incoming) => readAnswer(incoming, resolve),
      )
      outgoing.on('timeout', () => outgoing.destroy(new Error('timed out')))
      outgoing.on('error', ({ code, message }: NodeJS.ErrnoException) => {
        const isDropped = outgoing.reusedSocket && code === 'ECONNRESET' && method === 'GET'
        if (isDropped && mayRepeat) resolve(send(sent, false))
        else resolve({ ...NO_ANSWER, body: code ?? message })
      })
      outgoing.end(body)
    })
  }

  return { send: (sent) => send(sent, repeats), close: () => agent.destroy() }
}

function readAnswer(incoming: IncomingMessage, resolve: (answer: Answer) => void): void {
  let body = ''
  incoming.setEncoding('utf8')
  incoming.on('data', (chunk: string) => {
    body += chunk
  })
  const end = (isCut: boolean) => {
    const status = incoming.statusCode ?? 0
    const requestId = String(incoming.headers['x-request-id'] ?? '')
    resolve({ status, code: status < 400 ? '' : codeOf(body), requestId, body, isCut })
  }
  incoming.on('end', () => end(false))
  incoming.on('error', () => end(true))
}

function codeOf(body: string): string {
  const { code, error } = membersOf(body)
  if (typeof code === 'string') return code
  if (error === 'of the origin') return 'origin'
  return typeof error === 'string' ? error : ''
}

/** Returns the members of a response body; none if it is not a JSON object. */
export function membersOf(body: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(body)) as Record<string, unknown>
  } catch {
    return {}
  }
}
