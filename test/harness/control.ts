/** Servers around the gateways that count requests and simulate faults, controlled over HTTP. */
import type { IncomingMessage, RequestListener } from 'node:http'
import { startHttpServer, type TestServer } from './http-server.ts'

/** How a server answers. */
export type Mode = 'serve' | 'refuse' | 'hang' | 'error'

/** One request that reached a server. */
export interface Recorded {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string[]>>
  readonly body: string
  /** When the response was written, or the client closed the call before that, by `Date.now`. */
  endedMs?: number
  /** The client closed the call before the whole response was written: a gateway does at its deadline. */
  hasLeft?: true
}

/** A server that counts its requests, and simulates faults set through `/__control`. */
export interface ControlledServer extends TestServer {
  readonly controlUrl: string
}

/** More records indicate a leak in a test. */
const MAX_RECORDED = 20_000

/**
 * Starts a server that records its requests and answers with `serve` in the mode `serve`. Its
 * control port answers `GET /` with the records, deletes them on `DELETE /`, and sets the mode on
 * `PUT /<mode>`.
 */
export async function startControlled(
  serve: (recorded: Recorded, request: IncomingMessage) => Promise<Reply> | Reply,
): Promise<ControlledServer> {
  let mode: Mode = 'serve'
  let records: Recorded[] = []

  const listener: RequestListener = async (request, response) => {
    if (mode === 'refuse') return void request.socket.destroy()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const recorded: Recorded = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headersDistinct as Record<string, string[]>,
      body: Buffer.concat(chunks).toString('latin1'),
    }
    if (records.length < MAX_RECORDED) records.push(recorded)
    const ended = () => {
      recorded.endedMs = Date.now()
      if (!response.writableFinished) recorded.hasLeft = true
    }
    if (response.closed) ended()
    else response.once('close', ended)
    if (mode === 'hang') return
    if (mode === 'error') return void response.writeHead(500).end('<html>secret-detail</html>')
    try {
      const { status, headers, body } = await serve(recorded, request)
      response.writeHead(status, headers).end(body)
    } catch {
      response.destroy()
    }
  }

  const server = await startHttpServer(listener)
  const control = await startControl({
    records: () => records,
    forget() {
      records = []
    },
    setMode(next) {
      mode = next
    },
  })
  return {
    url: server.url,
    port: server.port,
    controlUrl: control.url,
    async close() {
      await server.close()
      await control.close()
    },
  }
}

/** Starts the control port of a server. */
export function startControl({
  records,
  forget,
  setMode,
}: {
  readonly records: () => readonly Recorded[]
  readonly forget: () => void
  readonly setMode: (mode: Mode) => void
}): Promise<TestServer> {
  return startHttpServer((request, response) => {
    if (request.method === 'PUT') setMode(request.url?.slice(1) as Mode)
    if (request.method === 'DELETE') forget()
    response.end(JSON.stringify(records()))
  })
}

export interface Reply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string | Buffer
}

/** A controlled server as other processes address it. */
export interface Controlled {
  readonly url: string
  readonly controlUrl: string
}

/** Returns the requests that reached a server so far. */
export async function recordsOf({ controlUrl }: Controlled): Promise<readonly Recorded[]> {
  return (await (await fetch(controlUrl)).json()) as Recorded[]
}

/** Keys of background writes: refused credentials, violations, overflow events, metrics. */
export const BEHIND_ANSWERS = /pc:(authentication-failures|violations|audit|metrics):/

/** Returns the calls to Redis that requests made themselves, without late background writes. */
export async function bodiesOfRequests(rest: Controlled): Promise<readonly string[]> {
  const bodies = (await recordsOf(rest)).map(({ body }) => body)
  return bodies.filter((body) => !BEHIND_ANSWERS.test(body))
}

/** Returns the number of {@link bodiesOfRequests}. */
export const callsOfRequests = async (rest: Controlled): Promise<number> =>
  (await bodiesOfRequests(rest)).length

export async function forget({ controlUrl }: Controlled): Promise<void> {
  await (await fetch(controlUrl, { method: 'DELETE' })).text()
}

export async function setMode({ controlUrl }: Controlled, mode: Mode): Promise<void> {
  await (await fetch(`${controlUrl}/${mode}`, { method: 'PUT' })).text()
}
