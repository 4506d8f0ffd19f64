/** A conversation with an isolate over workerd's inspector (Chrome DevTools Protocol). */

const ANSWER_TIMEOUT_MS = 30_000
const LIST_TIMEOUT_MS = 5_000

export interface InspectorSession {
  /** Asks, and waits for the answer. Throws an `Error` of one line if there is none, or an error. */
  send(method: string, params?: object): Promise<unknown>
  close(): void
}

/** What an inspector lists below `/json/list`. */
export interface InspectorTarget {
  readonly id: string
  readonly title: string
  readonly webSocketDebuggerUrl: string
}

interface Answer {
  readonly id?: number
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** The isolates that the inspector at `authority` (`host:port`) knows. */
export async function targetsOf(authority: string): Promise<readonly InspectorTarget[]> {
  const response = await fetch(`http://${authority}/json/list`, {
    signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
  })
  return (await response.json()) as readonly InspectorTarget[]
}

/**
 * Opens one to the isolate of `service` under workerd; `authority` is that of the inspector. Throws an
 * `Error` of one line where there is no such isolate.
 */
export async function openInspectorSession(
  authority: string,
  service: string,
): Promise<InspectorSession> {
  const target = (await targetsOf(authority)).find(
    ({ id }) => id === service || id.endsWith(`/${service}`),
  )
  if (target === undefined) throw new Error(`the inspector knows no service "${service}"`)
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  const waiting = new Map<number, (answer: Answer) => void>()
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true })
    socket.addEventListener('error', () => reject(new Error('the inspector is not there')), {
      once: true,
    })
  })
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  socket.addEventListener('close', () => {
    for (const answer of waiting.values()) answer({ error: { message: 'the inspector has gone' } })
  })
  let sent = 0
  return {
    async send(method, params = {}) {
      const id = ++sent
      const answer = await new Promise<Answer>((resolve) => {
        const timer = setTimeout(
          () => resolve({ error: { message: 'the inspector does not answer' } }),
          ANSWER_TIMEOUT_MS,
        )
        waiting.set(id, (value) => {
          clearTimeout(timer)
          resolve(value)
        })
        socket.send(JSON.stringify({ id, method, params }))
      })
      waiting.delete(id)
      if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`)
      return answer.result
    },
    close: () => socket.close(),
  }
}
