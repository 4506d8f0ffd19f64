/** Child processes of the soak, with requests and replies over Node's IPC channel. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

const STOP_TIMEOUT_MS = 3_000

export interface Child<Ready> {
  /** The message that the process sent when it was ready. */
  readonly ready: Ready
  readonly pid: number
  /** Sends a question and returns the answer. */
  ask<Answer>(question: object): Promise<Answer>
  close(): Promise<void>
}

interface Message {
  readonly id: number
  readonly answer: unknown
}

/**
 * Starts a module that sends one message when it is ready, and replies to `{ id, question }` with
 * `{ id, answer }`.
 */
export async function startChild<Ready>(
  file: string,
  env: Readonly<Record<string, string>>,
): Promise<Child<Ready>> {
  const child = fork(file, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, (answer: unknown) => void>()
  let asked = 0
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${file} has ended by itself`)
  })
  ended.catch(() => {})
  const [ready] = (await Promise.race([once(child, 'message'), ended])) as [Ready]
  child.on('message', ({ id, answer }: Message) => {
    waiting.get(id)?.(answer)
    waiting.delete(id)
  })
  return {
    ready,
    pid: child.pid as number,
    ask<Answer>(question: object) {
      const id = asked++
      const answer = new Promise<Answer>((resolve) => {
        waiting.set(id, resolve as (answer: unknown) => void)
        child.send({ id, question })
      })
      return Promise.race([answer, ended])
    },
    close: () => stop(child),
  }
}

/**
 * Runs in the child process: reports that it is ready, then answers questions. Ends with its
 * parent.
 */
export function serveParent(ready: object, answer: (question: never) => Promise<unknown>): void {
  process.on('message', async ({ id, question }: { id: number; question: never }) => {
    process.send?.({ id, answer: await answer(question) })
  })
  process.on('disconnect', () => process.exit())
  // The parent ends this process; Ctrl-C reaches the whole group.
  process.on('SIGINT', () => {})
  process.send?.(ready)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  if (child.connected) child.disconnect()
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(timer)
}
