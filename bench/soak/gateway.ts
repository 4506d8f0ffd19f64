/** Starts and kills one of the gateways. It starts as with `npm start`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import { descendants, listensOn, portsOf, residentBytesOf } from '../processes/proc.ts'
import { type Heap, openHeap, targetsOf } from '../stack/inspector.ts'

const READY = 'Portcullis is ready on'
/** Wrangler's name for the isolate, from the name in `wrangler.toml`. */
const ISOLATE = 'core:user:portcullis'
const BYTES_PER_MEGABYTE = 1_048_576

export type Gateway = ReturnType<typeof createGateway>

/** Creates the control of a gateway. `logFile` receives its output. */
export function createGateway(
  port: number,
  env: Readonly<Record<string, string>>,
  logFile: string,
) {
  let child: ChildProcess | undefined
  let workerd: number | undefined
  let isUp = false
  let surprises = 0
  let lives = 0

  // wrangler runs two workerd processes: the listening one forwards to the one with the Workers.
  const findWorkerd = () =>
    child?.pid === undefined
      ? undefined
      : descendants(child.pid, 'workerd').find((pid) => !listensOn(pid, port))

  const isolate = createIsolateHeap(() => workerd)

  async function start(): Promise<void> {
    const started = spawn(process.execPath, ['dev/start.ts'], {
      cwd: ROOT,
      // With this name of an npm script it ends after its parent, even if that was killed.
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
    /** Starts the gateway. Throws an `Error` with its output if it ends. */
    start,
    /** Kills all its processes at once: nothing is completed, flushed or closed. */
    async kill(): Promise<void> {
      const pid = child?.pid
      if (child === undefined || pid === undefined) return
      const exited = once(child, 'exit')
      isUp = false
      isolate.forget()
      for (const each of [pid, ...descendants(pid)]) killOutright(each)
      await exited
      child = undefined
    },
    async stop(): Promise<void> {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      isUp = false
      isolate.forget()
      child.kill('SIGTERM')
      await exited
      child = undefined
    },
    /** Returns the resident memory of its workerd in MB; undefined if it is down. */
    memoryMb(): number | undefined {
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
    /** Returns the heap of its isolate in MB after a garbage collection, if available. */
    heapMb: isolate.megabytes,
    /** Returns the number of starts. */
    lives: () => lives,
    /** Returns how often its workerd was replaced unexpectedly. */
    surprises: () => surprises,
  }
}

function killOutright(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process ended after it was listed.
  }
}

/**
 * Creates the measurement. `workerd` returns the process with the Workers. It only requests a
 * garbage collection and the heap size of this one isolate: other inspector calls disturbed the
 * load.
 */
function createIsolateHeap(workerd: () => number | undefined) {
  let authority: string | undefined
  let heap: Heap | undefined
  let isAsking = false

  function close(): void {
    heap?.close()
    heap = undefined
  }

  return {
    /** Finds the inspector. It connects to every port, so call it before the load starts. */
    async find(): Promise<void> {
      const pid = workerd()
      authority = pid === undefined ? undefined : await inspectorOf(pid)
    },
    /** The isolate must be busy: it collects garbage when it runs next. */
    async megabytes(): Promise<number | undefined> {
      if (isAsking || authority === undefined) return undefined
      isAsking = true
      try {
        heap ??= await openHeap(authority, ISOLATE)
        return (await heap.usedBytes()) / BYTES_PER_MEGABYTE
      } catch {
        // The process was killed, or is too busy to respond.
        close()
        return undefined
      } finally {
        isAsking = false
      }
    },
    forget(): void {
      close()
      authority = undefined
    },
  }
}

/** Returns the address of the process's inspector that has the isolate, if any. */
async function inspectorOf(pid: number): Promise<string | undefined> {
  for (const port of portsOf(pid)) {
    const authority = `${HOST}:${port}`
    const targets = await targetsOf(authority).catch(() => [])
    if (Array.isArray(targets) && targets.some(({ id }) => id === ISOLATE)) return authority
  }
  return undefined
}
