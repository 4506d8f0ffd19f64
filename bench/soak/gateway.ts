/** One of the gateways, started as a user starts it, and killed as no user would. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import { descendants, listensOn } from '../process-times.ts'

const READY = 'Portcullis is ready on'
const KILOBYTES_PER_MEGABYTE = 1_024
const KEPT_CHARACTERS = 20_000

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
  /** What it has printed lately. */
  output(): string
}

export function createGateway(port: number, env: Readonly<Record<string, string>>): Gateway {
  let child: ChildProcess | undefined
  let workerd: number | undefined
  let output = ''

  async function start(): Promise<void> {
    const started = spawn(process.execPath, ['dev/start.ts'], {
      cwd: ROOT,
      env: { ...process.env, ...env, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    const ready = new Promise<void>((resolve) => {
      const listen = (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-KEPT_CHARACTERS)
        if (output.includes(READY)) resolve()
      }
      output = ''
      started.stdout.on('data', listen)
      started.stderr.on('data', listen)
    })
    const ended = once(started, 'exit').then(([code]) => {
      throw new Error(`the gateway on port ${port} ended (${code}):\n${output}`)
    })
    ended.catch(() => {})
    await Promise.race([ready, ended])
    // wrangler runs two of workerd: the one that listens passes on to the one with the Workers.
    workerd = descendants(started.pid as number, 'workerd').find((pid) => !listensOn(pid, port))
  }

  return {
    port,
    url: `http://${HOST}:${port}`,
    start,
    async kill() {
      const pid = child?.pid
      if (child === undefined || pid === undefined) return
      const exited = once(child, 'exit')
      workerd = undefined
      for (const each of [pid, ...descendants(pid)]) process.kill(each, 'SIGKILL')
      await exited
      child = undefined
    },
    async stop() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      child = undefined
    },
    memoryMb() {
      try {
        const status = readFileSync(`/proc/${workerd}/status`, 'utf8')
        return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / KILOBYTES_PER_MEGABYTE
      } catch {
        return undefined
      }
    },
    output: () => output,
  }
}
