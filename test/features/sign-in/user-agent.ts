/** A browser without pages: it keeps cookies for each port, and follows redirects one by one. */
import { Agent, request } from 'undici'

export interface Visit {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The address of the last response. */
  readonly url: string
  /** Paths of all responses, in order, without queries. */
  readonly path: readonly string[]
}

const MAX_REDIRECTS = 20
/** Hosts such as `shop.localhost` are this machine, whatever its resolver says. */
const agentFrom = (localAddress?: string) =>
  new Agent({
    ...(localAddress && { localAddress }),
    connect: {
      lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
    },
  })
const local = agentFrom()
const isLocalName = (url: string) => new URL(url).hostname.endsWith('.localhost')

export type UserAgent = ReturnType<typeof createUserAgent>

/** `from` is its address. Default: 127.0.0.1. */
export function createUserAgent({ from }: { readonly from?: string } = {}) {
  const dispatcher = from === undefined ? undefined : agentFrom(from)
  /** By origin: browsers share cookies between ports, and no test must depend on that. */
  const jars = new Map<string, Map<string, string>>()
  const jarOf = (url: string) => {
    const { origin } = new URL(url)
    const jar = jars.get(origin) ?? new Map<string, string>()
    jars.set(origin, jar)
    return jar
  }

  async function send(url: string, init: RequestInit = {}): Promise<Response> {
    const jar = jarOf(url)
    const headers = new Headers(init.headers)
    if (jar.size > 0 && !headers.has('cookie'))
      headers.set('cookie', [...jar].map((pair) => pair.join('=')).join('; '))
    const response = await exchange(
      { url, method: init.method ?? 'GET', headers, body: init.body },
      dispatcher ?? (isLocalName(url) ? local : undefined),
    )
    for (const header of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? []
      if (/max-age=0\b/i.test(header)) jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }

  return {
    jarOf,
    send,
    /** Loads a page as a navigation. Stops before an address that `until` matches. */
    async visit(url: string, until?: RegExp, init: RequestInit = {}): Promise<Visit> {
      const path: string[] = []
      let at = url
      let options: RequestInit = init
      for (let n = 0; n < MAX_REDIRECTS; n++) {
        const headers = new Headers(options.headers)
        headers.set('accept', 'text/html')
        headers.set('sec-fetch-mode', 'navigate')
        headers.set('sec-fetch-dest', 'document')
        const response = await send(at, { ...options, headers })
        const text = await response.text()
        path.push(new URL(at).pathname)
        const location = response.headers.get('location')
        const next = location === null ? undefined : new URL(location, at).href
        if (next === undefined || until?.test(next))
          return { status: response.status, headers: response.headers, text, url: next ?? at, path }
        at = next
        options = {}
      }
      throw new Error(`more than ${MAX_REDIRECTS} redirects: ${path.join(' ')}`)
    },
  }
}

interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly body: RequestInit['body']
}

/** Not `fetch`, which sets `Sec-Fetch-Mode` itself. */
async function exchange(
  { url, method, headers, body }: Sent,
  dispatcher: Agent | undefined,
): Promise<Response> {
  const {
    statusCode,
    headers: received,
    body: stream,
  } = await request(url, {
    method: method as 'GET',
    ...(dispatcher && { dispatcher }),
    headers: Object.fromEntries(headers),
    body: typeof body === 'string' ? body : null,
  })
  const fields = new Headers()
  for (const [name, value] of Object.entries(received))
    for (const one of [value ?? []].flat()) fields.append(name, one)
  return new Response((await stream.text()) || null, { status: statusCode, headers: fields })
}
