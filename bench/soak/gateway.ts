/** Starts and kills one of the gateways. On workerd it starts as with `npm start`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import { descendants, listensOn, portsOf, residentBytesOf } from '../processes/proc.ts'
import { type Heap, type InspectorTarget, openHeap, targetsOf } from '../stack/inspector.ts'
import { NODE_PROCESS } from './node-bundle.ts'
import type { SoakRuntime } from './options.ts'
import type { Pause } from './pauses.ts'

const READY = 'Portcullis is ready on'
/** Wrangler's name for the isolate, from the name in `wrangler.toml`. */
const ISOLATE = 'core:user:portcullis'
const BYTES_PER_MEGABYTE = 1_048_576
const HEAP_TIMEOUT_MS = 5_000

const COMMANDS: Readonly<Record<SoakRuntime, readonly string[]>> = {
  workerd: ['dev/start.ts'],
  node: ['--max-semi-space-size=16', '--expose-gc', NODE_PROCESS],
}

export type Gateway = ReturnType<typeof createGateway>

/** Creates the control of a gateway. `logFile` receives its output. */
export function createGateway(
  runtime: SoakRuntime,
  port: number,
  env: Readonly<Record<string, string>>,
  logFile: string,
) {
  let child: ChildProcess | undefined
  let workerd: number | undefined
  let isUp = false
  let surprises = 0
  let lives = 0
  const pauses: Pause[] = []

  // wrangler runs two workerd processes: the listening one forwards to the one with the Workers.
  const findWorkerd = () =>
    child?.pid === undefined || runtime === 'node'
      ? child?.pid
      : descendants(child.pid, 'workerd').find((pid) => !listensOn(pid, port))

  const isolate =
    runtime === 'node' ? createProcessHeap(() => child, pauses) : createIsolateHeap(() => workerd)

  async function start(): Promise<void> {
    const started = spawn(process.execPath, COMMANDS[runtime], {
      cwd: ROOT,
      env: {
        ...process.env,
        // With this name of an npm script it ends after its parent, even if that was killed.
        npm_lifecycle_event: 'soak',
        ...env,
        PORT: String(port),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
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
      started.stdout?.on('data', listen)
      started.stderr?.on('data', listen)
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
    /** The pauses of its process on Node, up to the last measurement of the heap. */
    pauses,
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

/** Port: the heap of one gateway. */
interface HeapMeasure {
  /** Finds it. Call it before the load starts. */
  find(): Promise<void>
  /** Returns the heap in MB after a garbage collection; undefined if the gateway does not answer. */
  megabytes(): Promise<number | undefined>
  forget(): void
}

/** Creates the measurement of a Node process. An inspector delayed requests by up to a second. */
function createProcessHeap(process: () => ChildProcess | undefined, pauses: Pause[]): HeapMeasure {
  let isAsking = false
  return {
    async find() {},
    async megabytes() {
      const asked = process()
      if (isAsking || asked?.connected !== true) return undefined
      isAsking = true
      try {
        const answer = once(asked, 'message', { signal: AbortSignal.timeout(HEAP_TIMEOUT_MS) })
        asked.send('heap')
        const [measured] = (await answer) as [{ bytes: number; pauses: readonly Pause[] }]
        for (const pause of measured.pauses) pauses.push(pause)
        return measured.bytes / BYTES_PER_MEGABYTE
      } catch {
        // The process was killed, or is too busy to respond.
        return undefined
      } finally {
        isAsking = false
      }
    },
    forget() {},
  }
}

/**
 * Creates the measurement in workerd. `workerd` returns the process with the Workers. It only requests a
 * garbage collection and the heap size of this one isolate: other inspector calls disturbed the
 * load.
 */
function createIsolateHeap(workerd: () => number | undefined): HeapMeasure {
  const isIt = ({ id }: InspectorTarget) => id === ISOLATE
  let found: Found | undefined
  let heap: Heap | undefined
  let isAsking = false

  function close(): void {
    heap?.close()
    heap = undefined
  }

  return {
    /** Connects to every port. */
    async find(): Promise<void> {
      const pid = workerd()
      found = pid === undefined ? undefined : await inspectorOf(pid, isIt)
    },
    /** The isolate must be busy: it collects garbage when it runs next. */
    async megabytes(): Promise<number | undefined> {
      if (isAsking || found === undefined) return undefined
      isAsking = true
      try {
        heap ??= await openHeap(found.authority, found.id)
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
      found = undefined
    },
  }
}

interface Found {
  readonly authority: string
  readonly id: string
}

/** Returns the address of the process's inspector that has the isolate, if any. */
async function inspectorOf(
  pid: number,
  isIt: (target: InspectorTarget) => boolean,
): Promise<Found | undefined> {
  for (const port of portsOf(pid)) {
    const authority = `${HOST}:${port}`
    const targets: readonly InspectorTarget[] = await targetsOf(authority).catch(() => [])
    const target = Array.isArray(targets) ? targets.find(isIt) : undefined
    if (target !== undefined) return { authority, id: target.id }
  }
  return undefined
}
