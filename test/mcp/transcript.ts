/** Records the requests of an MCP client, and renders them as a document. */

export interface Transcript {
  /** Sends a request and records it. */
  readonly fetch: typeof fetch
  /** Begins a part of the transcript. */
  step(title: string): void
  /** Records that the client sent the user's browser to a URL. */
  browser(url: URL): void
  /** The lines of Markdown. */
  lines(): readonly string[]
}

const INTRODUCTION = `# MCP clients at the gateway

\`npx vitest run test/mcp/clients.test.ts -u\` generates this document, and the same test fails if it differs.

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

  return {
    step: (name) => void lines.push('', `### ${name}`, ''),
    browser: (to) =>
      void lines.push(`* Browser to ${nameOf(to)}, scope \`${to.searchParams.get('scope')}\``),
    async fetch(input, init) {
      const request = new Request(input, init)
      const content = contentOf(await request.clone().text(), request.headers.get('content-type'))
      const response = await fetch(request)
      const isStream = request.method !== 'POST' && request.url === url
      if (!isStream) {
        const challenge = response.headers.get('www-authenticate') ?? ''
        const [, scope] = /scope="([^"]*)"/.exec(challenge) ?? []
        lines.push(
          `* ${request.method} ${nameOf(new URL(request.url))}${content}: ${response.status}` +
            (scope === undefined ? '' : `, scope \`${scope}\``),
        )
      }
      return response
    },
    lines: () => lines,
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

export const transcripts = (all: readonly Transcript[]): string =>
  `${[INTRODUCTION.trimEnd(), ...all.map((one) => one.lines().join('\n'))].join('\n\n')}\n`
