/** Requests of well-behaved callers beside the cases. Each must have its correct response. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { HOST } from '../../dev/start/settings.ts'

const PAUSE_MS = 10
const BODY_BYTES = 5_000
/** Much longer than any response of a gateway takes. */
const DEADLINE_MS = 30_000

export interface Controls {
  /** Ends after the requests in progress. Returns their number, and what was wrong. */
  stop(): Promise<{ readonly count: number; readonly wrong: readonly string[] }>
}

/** Sends `lanes` requests at a time, with bodies that differ, until the end. */
export function startControls(port: number, lanes: number): Controls {
  const agent = new Agent({ keepAlive: true, maxSockets: lanes })
  const wrong: string[] = []
  let count = 0
  let isEnding = false
  async function lane(name: number): Promise<void> {
    for (let turn = 0; !isEnding; turn += 1) {
      count += 1
      const body = turn % 2 === 0 ? `${name}:${turn}:`.padEnd(BODY_BYTES, String(turn % 7)) : ''
      const problem = await echo(port, body, agent).catch((error: Error) => error.message)
      if (problem !== undefined) wrong.push(`control ${name}:${turn}: ${problem}`)
      await sleep(PAUSE_MS)
    }
  }
  const running = Array.from({ length: lanes }, (_, name) => lane(name))
  return {
    async stop() {
      isEnding = true
      await Promise.all(running)
      agent.destroy()
      return { count, wrong }
    },
  }
}

/** Sends one request. Returns what is wrong with its response, or undefined. */
export async function echo(port: number, body: string, agent?: Agent): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
  const method = body === '' ? 'GET' : 'POST'
  const headers = {
    'CF-Connecting-IP': '192.0.2.1',
    ...(body !== '' && { 'Content-Length': body.length }),
  }
  const call = request(
    { host: HOST, port, method, path: '/control', headers, agent },
    (response) => {
      let text = ''
      response.setEncoding('latin1').on('data', (part: string) => {
        text += part
      })
      response.on('error', reject).on('end', () => {
        if (response.statusCode !== 200) resolve(`${response.statusCode} ${text}`)
        else resolve(text === body ? undefined : `${text.length} bytes instead of ${body.length}`)
      })
    },
  )
  call.on('error', reject).end(body)
  const timer = setTimeout(() => call.destroy(new Error('no response')), DEADLINE_MS)
  return promise.finally(() => clearTimeout(timer))
}
