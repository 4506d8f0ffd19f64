/** Records the responses of an HTTP server, and replays them. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { dirname } from 'node:path'
import { startHttpServer, type TestServer } from '../../../harness/http-server.ts'

/** Larger bodies (models, sets of tuples) are recorded as their SHA-256. */
const MAX_BODY_CHARS = 300

/** The recorded request, then the status and the body of the response. */
export type Exchange = readonly [request: string, status: number, answer: string]

export interface RecorderOptions {
  /** Base URL of the server to record. */
  readonly target: string
  /** The key that the server accepts. The recording contains only whether a request has it. */
  readonly token: string
}

/** Starts a proxy to the target that writes each exchange to `file` when it is closed. */
export async function startRecorder(
  file: string,
  { target, token }: RecorderOptions,
): Promise<TestServer> {
  const exchanges: Exchange[] = []
  const server = await startHttpServer(async (request, response) => {
    const body = await bodyOf(request)
    const answer = await fetch(target + request.url, {
      method: request.method ?? '',
      headers: {
        authorization: request.headers.authorization ?? '',
        'content-type': request.headers['content-type'] ?? '',
      },
      body,
    })
    const text = await answer.text()
    exchanges.push([described(request, body, token), answer.status, text])
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
  })
  return {
    ...server,
    async close() {
      await server.close()
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, exchanges.map((one) => `${JSON.stringify(one)}\n`).join(''))
    },
  }
}

/** Reads the file of a recorder. */
export function readRecording(file: string): Exchange[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Exchange)
}

/**
 * Starts a server that replays the recorded response of each request, and successive responses for
 * a repeated request. It answers 500 to a request that is not recorded or comes too often, and then
 * `close` throws an error that names it: a test that expects an error cannot pass by accident.
 */
export async function startReplay(
  recording: readonly Exchange[],
  token: string,
): Promise<TestServer> {
  const answers = Map.groupBy(recording, ([request]) => request)
  const unknown: string[] = []
  const server = await startHttpServer(async (request, response) => {
    const entry = described(request, await bodyOf(request), token)
    const exchange = answers.get(entry)?.shift()
    if (exchange === undefined) unknown.push(entry)
    const [, status, answer] = exchange ?? [entry, 500, 'not recorded']
    response.writeHead(status, { 'content-type': 'application/json' }).end(answer)
  })
  return {
    ...server,
    async close() {
      await server.close()
      if (unknown.length > 0)
        throw new Error(`${unknown.length} requests are not recorded, the first: ${unknown[0]}`)
    },
  }
}

function described({ method, url, headers }: IncomingMessage, body: string, token: string): string {
  const sent =
    body.length > MAX_BODY_CHARS
      ? `sha256:${createHash('sha256').update(body).digest('base64url')}`
      : body
  const key = headers.authorization === `Bearer ${token}` ? 'with the key' : 'without the key'
  return `${method} ${url} ${key} ${sent}`
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
