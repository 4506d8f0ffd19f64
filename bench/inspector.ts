/** A CPU profile of an isolate, over workerd's inspector (Chrome DevTools Protocol, `Profiler`). */

/** A function at a place of the call tree. Lines and columns count from 0. */
export interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
    readonly columnNumber: number
  }
  /** Ids of the nodes that it called. */
  readonly children?: readonly number[]
}

export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  /** Ids of nodes: what was on top of the stack. */
  readonly samples: readonly number[]
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[]
}

/** Microseconds between two samples. */
const SAMPLING_INTERVAL_US = 250
const ANSWER_TIMEOUT_MS = 30_000

interface Answer {
  readonly id?: number
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** Profiles the isolate of `service` while `work` runs. `authority` is that of the inspector. */
export async function profileWhile(
  authority: string,
  service: string,
  work: () => Promise<unknown>,
): Promise<CpuProfile> {
  const socket = new WebSocket(await debuggerUrl(authority, service))
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true })
    socket.addEventListener('error', () => reject(new Error('the inspector is not there')), {
      once: true,
    })
  })
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  let sent = 0
  async function send(method: string, params: object = {}): Promise<unknown> {
    const id = ++sent
    const answer = await new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the inspector does not answer ${method}`)),
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
  }
  try {
    await send('Profiler.enable')
    await send('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US })
    await send('Profiler.start')
    await work()
    const { profile } = (await send('Profiler.stop')) as { readonly profile: CpuProfile }
    return profile
  } finally {
    socket.close()
  }
}

async function debuggerUrl(authority: string, service: string): Promise<string> {
  const response = await fetch(`http://${authority}/json/list`)
  const targets = (await response.json()) as readonly {
    readonly id: string
    readonly webSocketDebuggerUrl: string
  }[]
  const target = targets.find(({ id }) => id === service || id.endsWith(`/${service}`))
  if (target === undefined) throw new Error(`the inspector knows no service "${service}"`)
  return target.webSocketDebuggerUrl
}
