/** Child processes with questions and answers over Node's IPC channel. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

const STOP_TIMEOUT_MS = 3_000

export interface Child<Ready> {
  /** The message that the process sent when it was ready. */
  readonly ready: Ready
  readonly pid: number
  /** Sends a question and returns the answer. Throws an `Error` of one line for a failed question. */
  call<Answer>(question: object): Promise<Answer>
  close(): Promise<void>
}

interface Message {
  readonly id: number
  readonly answer?: unknown
  readonly error?: string
}

/** Starts a module that calls {@link serveParent} when it is ready. */
export async function startChild<Ready>(
  file: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Child<Ready>> {
  const child = fork(file, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, (message: Message) => void>()
  let calls = 0
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${file.split('/').at(-1)} ended unexpectedly`)
  })
  ended.catch(() => {})
  const [ready] = (await Promise.race([once(child, 'message'), ended])) as [Ready]
  child.on('message', (message: Message) => {
    waiting.get(message.id)?.(message)
    waiting.delete(message.id)
  })
  return {
    ready,
    pid: child.pid as number,
    async call<Answer>(question: object) {
      const id = calls++
      const answered = new Promise<Message>((resolve) => {
        waiting.set(id, resolve)
        child.send({ id, question })
      })
      const { answer, error } = await Promise.race([answered, ended])
      if (error !== undefined) throw new Error(error)
      return answer as Answer
    },
    close: () => stop(child, () => child.connected && child.disconnect()),
  }
}

/** Runs in the child process: answers questions, and ends with its parent, after `close`. */
export function serveParent(
  ready: object,
  answer: (question: never) => unknown,
  close: () => Promise<unknown> = async () => {},
): void {
  process.on('message', async ({ id, question }: { id: number; question: never }) => {
    let message: Message
    try {
      message = { id, answer: await answer(question) }
    } catch (error) {
      message = { id, error: (error as Error).message }
    }
    // The parent may have ended, so errors are ignored.
    process.send?.(message, undefined, undefined, () => {})
  })
  process.on('disconnect', () => void close().finally(() => process.exit()))
  // The parent ends this process; Ctrl-C reaches the whole group.
  process.on('SIGINT', () => {})
  process.send?.(ready)
}

/** Ends a process with `end`, and kills it if it does not end in time. */
async function stop(
  child: ChildProcess,
  end: () => unknown = () => child.kill('SIGTERM'),
): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  end()
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(timer)
}

/** Kills a process if this one exits first. Returns a function that ends the process. */
export function endWithParent(child: ChildProcess): () => Promise<void> {
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  return async () => {
    await stop(child)
    process.off('exit', kill)
  }
}
