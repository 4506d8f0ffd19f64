/** Measures isolates with workerd's inspector (Chrome DevTools Protocol): heap and CPU profile. */
import { setTimeout as sleep } from 'node:timers/promises'

const ANSWER_TIMEOUT_MS = 30_000
const LIST_TIMEOUT_MS = 5_000

export interface InspectorSession {
  /** Calls a method. Throws an `Error` of one line for an error, and for a missing response. */
  send(method: string, params?: object): Promise<unknown>
  close(): void
}

/** An entry of the inspector's `/json/list`. */
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

/** Returns the isolates of the inspector at `authority` (`host:port`). */
export async function targetsOf(authority: string): Promise<readonly InspectorTarget[]> {
  const response = await fetch(`http://${authority}/json/list`, {
    signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
  })
  return (await response.json()) as readonly InspectorTarget[]
}

/** Opens a session with the isolate of `service`. Throws if the inspector has none. */
async function openInspectorSession(authority: string, service: string): Promise<InspectorSession> {
  const target = (await targetsOf(authority)).find(
    ({ id }) => id === service || id.endsWith(`/${service}`),
  )
  if (target === undefined) throw new Error(`the inspector has no service "${service}"`)
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  const waiting = new Map<number, (answer: Answer) => void>()
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true })
    socket.addEventListener('error', () => reject(new Error('cannot connect to the inspector')), {
      once: true,
    })
  })
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  socket.addEventListener('close', () => {
    for (const answer of waiting.values())
      answer({ error: { message: 'the inspector closed the connection' } })
  })
  let sent = 0
  return {
    async send(method, params = {}) {
      const id = ++sent
      const answer = await new Promise<Answer>((resolve) => {
        const timer = setTimeout(
          () => resolve({ error: { message: 'the inspector does not respond' } }),
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

/** The second collection frees the objects that the first one finalized. */
const COLLECTIONS = 2
const POKE_MS = 20

/** Runs code in the isolate, because V8 collects garbage only while the isolate runs. */
export type Poke = () => Promise<unknown>

export interface Heap {
  /** Returns the bytes of the heap after a garbage collection, without buffers outside the heap. */
  usedBytes(): Promise<number>
  close(): void
}

/** Opens the heap of the isolate of `service`. Without `poke`, the isolate must be busy. */
export async function openHeap(authority: string, service: string, poke?: Poke): Promise<Heap> {
  const session = await openInspectorSession(authority, service)
  return {
    usedBytes: () => usedBytesOf(session, poke),
    close: session.close,
  }
}

async function usedBytesOf(session: InspectorSession, poke?: Poke): Promise<number> {
  for (let count = 0; count < COLLECTIONS; count++) {
    let isDone = false
    const collected = session.send('HeapProfiler.collectGarbage').finally(() => {
      isDone = true
    })
    // If `poke` fails first, no code awaits this promise.
    collected.catch(() => {})
    while (poke !== undefined && !isDone) await Promise.all([poke(), sleep(POKE_MS)])
    await collected
  }
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { readonly usedSize: number }
  return usedSize
}

/** A function at one position in the call tree. Lines and columns count from 0. */
export interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
    readonly columnNumber: number
  }
  /** Ids of the called nodes. */
  readonly children?: readonly number[]
}

export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  /** Ids of the nodes that were on top of the stack. */
  readonly samples: readonly number[]
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[]
}

/** The sampling interval in microseconds. */
const SAMPLING_INTERVAL_US = 250

/** Profiles the isolate of `service` while `work` runs. `authority` is the inspector's. */
export async function profileWhile(
  authority: string,
  service: string,
  work: () => Promise<unknown>,
): Promise<CpuProfile> {
  const session = await openInspectorSession(authority, service)
  try {
    await session.send('Profiler.enable')
    await session.send('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US })
    await session.send('Profiler.start')
    await work()
    const { profile } = (await session.send('Profiler.stop')) as { readonly profile: CpuProfile }
    return profile
  } finally {
    session.close()
  }
}
