/** Starts the gateway of the fuzz, on Node or in workerd. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backends } from '../../bench/stack/backends.ts'
import { bundleWorker } from '../../bench/stack/bundle.ts'
import { queueAddressOf } from '../../bench/stack/gateway.ts'
import { startWorkerd } from '../../bench/stack/workerd.ts'
import type { Report } from './node-process.ts'

export const FUZZ_RUNTIMES = ['node', 'workerd'] as const
export type FuzzRuntime = (typeof FUZZ_RUNTIMES)[number]

export interface Gateway {
  readonly port: number
  readonly pid: number
  /** Whether the process has ended. */
  hasExited(): boolean
  /** Open file descriptors, with those of sockets. */
  descriptors(): number
  /** What Node reports about itself. Undefined in workerd. */
  report(): Promise<Report | undefined>
  /** Request ids of the audit events so far. Undefined in workerd, which sends them to a queue. */
  audited(): readonly string[] | undefined
  /** What the gateway wrote to stderr. */
  complaints(): string
  /** Ends the gateway in order. Returns its exit code; undefined if it has no orderly end. */
  stop(): Promise<number | null | undefined>
}

const PUBLIC_URL = 'https://gateway.test'
const REQUEST_ID = /"requestId":"([^"]+)"/

/** Starts the gateway before an origin. */
export const startGateway = (
  runtime: FuzzRuntime,
  backends: Backends,
  originUrl: string,
): Promise<Gateway> =>
  runtime === 'node' ? onNode(backends, originUrl) : inWorkerd(backends, originUrl)

async function onNode({ redis }: Backends, originUrl: string): Promise<Gateway> {
  const child = fork(join(import.meta.dirname, 'node-process.ts'), {
    env: {
      ...process.env,
      ORIGIN_URL: originUrl,
      PUBLIC_URL,
      REDIS_URL: redis.directUrl,
      REDIS_TIMEOUT_MS: '5000',
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  let [complaints, line] = ['', '']
  const audited: string[] = []
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const each of lines) audited.push(REQUEST_ID.exec(each)?.[1] ?? '')
  })
  const exited = once(child, 'exit')
  const [url] = (await Promise.race([
    once(child, 'message'),
    exited.then(() => {
      throw new Error(`the gateway does not start: ${complaints}`)
    }),
  ])) as [string]
  const hasExited = () => child.exitCode !== null || child.signalCode !== null
  return {
    port: Number(new URL(url).port),
    pid: child.pid ?? 0,
    hasExited,
    descriptors: () => descriptorsOf(child.pid ?? 0),
    async report() {
      if (hasExited()) return undefined
      const answered = once(child, 'message')
      child.send({})
      const [report] = (await Promise.race([answered, exited])) as [Report]
      return report
    },
    audited: () => audited,
    complaints: () => complaints,
    async stop() {
      if (!hasExited()) child.kill('SIGTERM')
      const [code] = (await exited) as [number | null]
      process.off('exit', kill)
      return code
    },
  }
}

async function inWorkerd(backends: Backends, originUrl: string): Promise<Gateway> {
  const directory = mkdtempSync(join(tmpdir(), 'fuzz-transport-'))
  const bundle = await bundleWorker('test/fuzz/worker.toml', directory)
  const { pid, originOf, close } = await startWorkerd({
    bundle,
    directory,
    names: ['gateway'],
    variables: {
      ORIGIN_URL: originUrl,
      PUBLIC_URL,
      UPSTASH_REDIS_REST_URL: backends.redis.url,
      UPSTASH_REDIS_REST_TOKEN: backends.redis.token,
      REDIS_TIMEOUT_MS: '5000',
    },
    queueAddress: queueAddressOf(backends),
  })
  return {
    port: Number(new URL(originOf('gateway')).port),
    pid,
    hasExited: () => descriptorsOf(pid) === 0,
    descriptors: () => descriptorsOf(pid),
    report: async () => undefined,
    audited: () => undefined,
    complaints: () => '',
    async stop() {
      await close()
      rmSync(directory, { recursive: true, force: true })
      return undefined
    },
  }
}

/** 0: the process has ended. */
function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}
