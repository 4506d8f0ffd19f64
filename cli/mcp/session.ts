/** Reads lists of an MCP server with streamable HTTP. The server is not trusted: each size, count and time has a bound. */
import { Failure, refused, undecided } from '../failure.ts'
import { objectIn } from '../json.ts'
import { visible } from '../text.ts'

const VERSION = '2025-11-25'
/** Has no sessions: each request states its version. */
const STATELESS_VERSION = '2026-07-28'
const TIMEOUT_MS = 15_000
const MAX_BYTES = 8_388_608
const MAX_PAGES = 100
const MAX_ENTRIES = 2_000
const MAX_NAME = 256
const MAX_SHOWN = 200
const METHOD_NOT_FOUND = -32_601

export type Entry = Readonly<Record<string, unknown>>

/** A list method, the member of its result, and the member that names an entry. */
export interface ListKind {
  readonly method: string
  readonly member: string
  readonly key: string
  readonly maxKey?: number
}

interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown }
}

/** Opens a session, or none with a server that has no sessions. Throws a `Failure` that says what the server did. */
export async function openMcpSession(url: URL, token: string | undefined) {
  let nextId = 1
  let session: string | undefined
  let version = VERSION

  const headers = (method: string): Record<string, string> => ({
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(session !== undefined && { 'Mcp-Session-Id': session }),
    ...(method !== 'initialize' && { 'MCP-Protocol-Version': version }),
    ...(version === STATELESS_VERSION && { 'Mcp-Method': method }),
  })

  async function send(method: string, params: object, hasAnswer = true): Promise<Answer> {
    const id = hasAnswer ? nextId++ : undefined
    const deadline = AbortSignal.timeout(TIMEOUT_MS)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: headers(method),
        body: JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, params }),
        // A redirect would send the token to another server.
        redirect: 'manual',
        signal: deadline,
      })
      if (method === 'initialize') session = response.headers.get('Mcp-Session-Id') ?? undefined
      return await answerIn(response, id, method)
    } catch (error) {
      if (error instanceof Failure) throw error
      throw unreachable(url, error as Error)
    }
  }

  const stateless = () => ({
    ...(version === STATELESS_VERSION && {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': version,
        'io.modelcontextprotocol/clientInfo': CLIENT,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    }),
  })

  async function begin(): Promise<void> {
    const started = await send('initialize', {
      protocolVersion: VERSION,
      capabilities: {},
      clientInfo: CLIENT,
    })
    if (started.error?.code === METHOD_NOT_FOUND) {
      version = STATELESS_VERSION
      return
    }
    const { protocolVersion } = recordOf(resultOf(started, 'initialize'))
    if (typeof protocolVersion !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(protocolVersion))
      throw odd('initialize', 'its answer has no protocolVersion')
    version = protocolVersion
    await send('notifications/initialized', {}, false)
  }

  await begin()
  return {
    /** Returns all entries of a list, by name. Empty if the server does not have the method. */
    async list({
      method,
      member,
      key,
      maxKey = MAX_NAME,
    }: ListKind): Promise<ReadonlyMap<string, Entry>> {
      const found = new Map<string, Entry>()
      const cursors = new Set<string>()
      let cursor: string | undefined
      for (let page = 1; ; page += 1) {
        if (page > MAX_PAGES) throw odd(method, `it has more than ${MAX_PAGES} pages`)
        const params = { ...(cursor !== undefined && { cursor }), ...stateless() }
        const answer = await send(method, params)
        if (answer.error?.code === METHOD_NOT_FOUND) return found
        const { [member]: entries, nextCursor } = recordOf(resultOf(answer, method))
        if (!Array.isArray(entries)) throw odd(method, `its answer has no list ${member}`)
        for (const entry of entries) {
          const { [key]: name } = recordOf(entry)
          if (typeof name !== 'string' || name === '' || name.length > maxKey)
            throw odd(method, `an entry has no ${key} of 1 to ${maxKey} characters`)
          // It would stand for other names in the policy.
          if (name.includes('*')) throw odd(method, `"${shown(name)}" contains *`)
          if (found.has(name)) throw odd(method, `"${shown(name)}" occurs twice`)
          found.set(name, recordOf(entry))
          if (found.size > MAX_ENTRIES) throw odd(method, `it has more than ${MAX_ENTRIES} entries`)
        }
        if (nextCursor === undefined || nextCursor === null) return found
        if (typeof nextCursor !== 'string' || cursors.has(nextCursor))
          throw odd(method, 'its pages do not end: a cursor is repeated')
        cursors.add(nextCursor)
        cursor = nextCursor
      }
    },
    /** Ends the session at the server. Never rejects. */
    async close(): Promise<void> {
      if (session === undefined) return
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const ended = await fetch(url, {
        method: 'DELETE',
        headers: headers('close'),
        redirect: 'manual',
        signal,
      }).catch(() => undefined)
      await ended?.body?.cancel().catch(() => {})
    },
  }
}

const CLIENT = { name: 'portcullis', version: '1' }

async function answerIn(
  response: Response,
  id: number | undefined,
  method: string,
): Promise<Answer> {
  const { status, ok, headers } = response
  if (status === 401 || status === 403)
    throw refused(
      'refused_by_server',
      `${method}: the MCP server answered with status ${status}; pass a token with --token-stdin`,
    )
  if (status >= 300 && status < 400)
    throw odd(
      method,
      `it redirects to ${shown(headers.get('Location') ?? 'nowhere')}; use that URL`,
    )
  const isStream = /^text\/event-stream\b/i.test(headers.get('Content-Type') ?? '')
  const text = await boundedText(
    response,
    method,
    (so) => isStream && id !== undefined && inStream(so, id) !== undefined,
  )
  if (id === undefined) return {}
  const answer = isStream ? inStream(text, id) : objectIn(text)
  if (answer === undefined || Array.isArray(answer)) {
    const problem = ok ? 'its answer is not JSON-RPC' : `it answered with status ${status}`
    throw status >= 500
      ? undecided('unexpected_answer', `${method}: ${problem}`)
      : odd(method, problem)
  }
  return answer as Answer
}

/** Reads a body of bounded size. A stream ends when `isEnough`, because the server may keep it open. */
async function boundedText(
  response: Response,
  method: string,
  isEnough: (text: string) => boolean,
): Promise<string> {
  const decoder = new TextDecoder()
  let bytes = 0
  let text = ''
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > MAX_BYTES) throw odd(method, `its answer has more than ${MAX_BYTES} bytes`)
    text += decoder.decode(chunk, { stream: true })
    if (isEnough(text)) return text
  }
  return text
}

/** Returns the message with the id in a stream of events (WHATWG HTML, server-sent events). */
function inStream(text: string, id: number): object | undefined {
  for (const block of text.split(/\r\n\r\n|\n\n|\r\r/)) {
    const data = block
      .split(/\r\n|\n|\r/)
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice('data:'.length).replace(/^ /, ''))
      .join('\n')
    const message = data === '' ? undefined : objectIn(data)
    if (message !== undefined && (message as { id?: unknown }).id === id) return message
  }
  return undefined
}

function resultOf({ result, error }: Answer, method: string): unknown {
  if (error === undefined) return result
  const { code, message } = recordOf(error)
  throw odd(method, `error ${shown(String(code))}: ${shown(String(message))}`)
}

const recordOf = (value: unknown): Entry =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entry) : {}

const shown = (text: string): string =>
  visible(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)

const odd = (method: string, problem: string): Failure =>
  refused('unexpected_answer', `${method}: ${problem}`)

/** Never the message: that of an invalid header has the header, and so the token. */
function codeOf({ cause }: Error): string {
  const { code } = recordOf(cause)
  return typeof code === 'string' ? ` (${shown(code)})` : ''
}

function unreachable(url: URL, error: Error): Failure {
  const seconds = TIMEOUT_MS / 1_000
  const problem =
    error.name === 'TimeoutError'
      ? `did not respond within ${seconds} s`
      : `cannot be reached${codeOf(error)}`
  return undecided('server_unreachable', `${url.origin} ${problem}`)
}
