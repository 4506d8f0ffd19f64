/** A server that says what a test wants to be said, by path, and remembers what it was asked. */
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

export const METADATA = '/.well-known/oauth-authorization-server'

export interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: unknown
}

export interface Asked {
  readonly method: string | undefined
  readonly path: string
  /** Without the question mark. */
  readonly query: string
  readonly authorization: string | undefined
  readonly body: string
}

const servers: TestServer[] = []

/** Closes every server that was started. */
export async function closeAnswers(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()))
}

/** Answers by path; metadata and tokens as a gateway does, unless `answers` says otherwise. */
export async function startAnswers(answers: Record<string, Answer>) {
  const asked: Asked[] = []
  const usual: Record<string, Answer> = {
    [METADATA]: { body: { token_endpoint: 'https://public.example/oauth/token' } },
    '/oauth/token': { body: { access_token: 'the-access-token', expires_in: 900 } },
  }
  const server = await startHttpServer(async (request, response) => {
    const [path = '', query = ''] = request.url?.split('?') ?? []
    let body = ''
    for await (const chunk of request) body += chunk
    asked.push({
      method: request.method,
      path,
      query,
      authorization: request.headers.authorization,
      body,
    })
    const answer = answers[path] ?? usual[path] ?? { status: 404, body: 'none' }
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body)
    response.writeHead(answer.status ?? 200, answer.headers).end(text)
  })
  servers.push(server)
  return { url: server.url, asked }
}
