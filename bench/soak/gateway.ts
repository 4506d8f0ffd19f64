/** One of the gateways, started as a user starts it, and killed as no user would. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import { residentBytesOf } from '../memory/heap.ts'
import { descendants, listensOn } from '../process-times.ts'
import { createIsolateHeap } from './isolate-heap.ts'

const READY = 'Portcullis is ready on'
const BYTES_PER_MEGABYTE = 1_048_576

export interface Gateway {
  readonly port: number
  readonly url: string
  /** Starts it, and resolves when it is ready. Throws an `Error` with what it said if it ends. */
  start(): Promise<void>
  /** Ends it with all its processes, at once: nothing is finished, flushed or closed. */
  kill(): Promise<void>
  /** Asks it to end, and waits. */
  stop(): Promise<void>
  /** Resident memory of the workerd that runs the Workers, MB; undefined while there is none. */
  memoryMb(): number | undefined
  /** Heap of the gateway's own isolate after a collection of garbage, MB; undefined: not to be had. */
  heapMb(): Promise<number | undefined>
  /** How often it has been started. */
  lives(): number
  /** How often its workerd has been replaced by another one that was not asked for. */
  surprises(): number
}

/** `logFile` is where it prints to. */
export function createGateway(
  port: number,
  env: Readonly<Record<string, string>>,
  logFile: string,
): Gateway {
  let child: ChildProcess | undefined
  let workerd: number | undefined
  let isUp = false
  let surprises = 0
  let lives = 0

  // wrangler runs two of workerd: the one that listens passes on to the one with the Workers.
  const findWorkerd = () =>
    child?.pid === undefined
      ? undefined
      : descendants(child.pid, 'workerd').find((pid) => !listensOn(pid, port))

  const isolate = createIsolateHeap(() => workerd)

  async function start(): Promise<void> {
    const started = spawn(process.execPath, ['dev/start.ts'], {
      cwd: ROOT,
      // As a script of npm it ends when its parent is gone, even if that was killed.
      env: { ...process.env, npm_lifecycle_event: 'soak', ...env, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    let output = ''
    const ready = new Promise<void>((resolve) => {
      const listen = (chunk: Buffer) => {
        appendFileSync(logFile, chunk)
        if (output.includes(READY)) return
        output += chunk.toString()
        if (output.includes(READY)) resolve()
      }
      started.stdout.on('data', listen)
      started.stderr.on('data', listen)
    })
    const ended = once(started, 'exit').then(([code]) => {
      throw new Error(`the gateway on port ${port} ended (${code}):\n${output}`)
    })
    ended.catch(() => {})
    await Promise.race([ready, ended])
    workerd = findWorkerd()
    await isolate.find()
    lives++
    isUp = true
  }

  return {
    port,
    url: `http://${HOST}:${port}`,
    start,
    async kill() {
      const pid = child?.pid
      if (child === undefined || pid === undefined) return
      const exited = once(child, 'exit')
      isUp = false
      isolate.forget()
      for (const each of [pid, ...descendants(pid)]) killOutright(each)
      await exited
      child = undefined
    },
    async stop() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      isUp = false
      isolate.forget()
      child.kill('SIGTERM')
      await exited
      child = undefined
    },
    memoryMb() {
      if (!isUp) return undefined
      workerd ??= findWorkerd()
      const bytes = workerd === undefined ? undefined : residentBytesOf(workerd)
      if (workerd !== undefined && bytes === undefined) {
        surprises++
        workerd = undefined
        isolate.forget()
      }
      return bytes === undefined ? undefined : bytes / BYTES_PER_MEGABYTE
    },
    heapMb: isolate.megabytes,
    lives: () => lives,
    surprises: () => surprises,
  }
}

function killOutright(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Ended since it was listed.
  }
}
