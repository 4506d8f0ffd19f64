/** Records the requests of an MCP client, and renders them as a document. */

/** A request and its response. */
export interface Exchange {
  readonly method: string
  readonly url: string
  /** `Content-Type` of the request. */
  readonly type: string | null
  readonly body: string
  readonly status: number
  /** `WWW-Authenticate` of the response. */
  readonly challenge: string | null
}

export interface Transcript {
  /** Sends a request and records it. */
  readonly fetch: typeof fetch
  /** Records a request that the client has sent itself. */
  exchange(exchange: Exchange): void
  /** Begins a part of the transcript. */
  step(title: string): void
  /** Records that the client sent the user's browser to a URL. */
  browser(url: URL): void
  /** Returns the part of the document. */
  text(): string
}

const INTRODUCTION = `# MCP clients at the gateway

\`npx vitest run test/features/mcp/clients.slow.test.ts -u\` generates this document, and the same test fails if it differs.

Each part is one official client, unmodified, with all its requests, except those that open or end an event stream. The user logs in at
npm \`oidc-provider\` itself, or at the gateway, whose users come from there. *Browser* is where the client sends the user; the test follows the
redirects and forms. The scope after a status is that of the challenge.
`

/** `url` is that of the MCP server, `issuer` where users log in. */
export function createTranscript(
  title: string,
  { url, issuer }: { readonly url: string; readonly issuer: string },
): Transcript {
  const lines: string[] = [`## ${title}`]

  function nameOf({ origin, pathname }: URL): string {
    if (origin === new URL(url).origin) return `gateway ${pathname}`
    return origin === new URL(issuer).origin ? `provider ${pathname}` : `other ${pathname}`
  }

  function record({ method, url: to, type, body, status, challenge }: Exchange): void {
    const isStream = method !== 'POST' && to === url
    if (isStream) return
    const [, scope] = /scope="([^"]*)"/.exec(challenge ?? '') ?? []
    lines.push(
      `* ${method} ${nameOf(new URL(to))}${contentOf(body, type)}: ${status}` +
        (scope === undefined ? '' : `, scope \`${scope}\``),
    )
  }

  return {
    step: (name) => void lines.push('', `### ${name}`, ''),
    browser: (to) =>
      void lines.push(`* Browser to ${nameOf(to)}, scope \`${to.searchParams.get('scope')}\``),
    exchange: record,
    async fetch(input, init) {
      const request = new Request(input, init)
      const body = await request.clone().text()
      const type = request.headers.get('content-type')
      const response = await fetch(request)
      const { method } = request
      const challenge = response.headers.get('www-authenticate')
      record({ method, url: request.url, type, body, status: response.status, challenge })
      return response
    },
    text: () => lines.join('\n'),
  }
}

/** Names what a body asks for: the method of JSON-RPC, or the grant. */
function contentOf(body: string, type: string | null): string {
  if (type?.includes('json') !== true) {
    const grant = new URLSearchParams(body).get('grant_type')
    return grant === null ? '' : ` \`${grant}\``
  }
  const { method, params } = JSON.parse(body)
  if (method === undefined) return ''
  return params?.name === undefined ? ` \`${method}\`` : ` \`${method}\` ${params.name}`
}

export const transcripts = (all: readonly string[]): string =>
  `${[INTRODUCTION.trimEnd(), ...all].join('\n\n')}\n`
