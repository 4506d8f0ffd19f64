/** Runs a Worker in real workerd, without anything between it and the socket. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { policyTsconfig } from '../../dev/start/policy-paths.ts'
import { freePort, ROOT } from '../harness/process.ts'

const WORKERD = join(import.meta.dirname, '../../node_modules/.bin/workerd')
export const COMPATIBILITY_DATE = '2026-11-01'

export interface Running {
  readonly port: number
  readonly pid: number
  /** Returns the output of the process so far. */
  readonly log: () => string
  readonly stop: () => Promise<void>
}

export interface WorkerdOptions {
  /** Path of the entry module. */
  readonly entry: string
  /** Path of the policy. Default: that of the checkout. */
  readonly policy?: string | undefined
  /** Text bindings. */
  readonly vars: Readonly<Record<string, string>>
  /** Default: a free one. */
  readonly port?: number
}

/** Bundles of this run, by their entries and policies: sources do not change during it, and many files start the same ones. */
const bundles = new Map<string, Promise<Uint8Array>>()

/** Returns the module of an entry, with a policy. */
export function bundle(entry: string, policy?: string): Promise<Uint8Array> {
  const name = JSON.stringify([entry, policy])
  const bundled = bundles.get(name) ?? bundleAnew(entry, policy)
  bundles.set(name, bundled)
  return bundled
}

async function bundleAnew(entry: string, policy?: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    write: false,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    ...(policy !== undefined && { tsconfigRaw: policyTsconfig(join(ROOT, policy)) }),
  })
  return outputFiles[0]?.contents ?? new Uint8Array()
}

/** Bundles the entry and serves it; resolves once it answers. */
export async function startWorkerd({
  entry,
  policy,
  vars,
  port: chosen,
}: WorkerdOptions): Promise<Running> {
  const directory = await mkdtemp(join(tmpdir(), 'portcullis-workerd-'))
  await writeFile(join(directory, 'worker.js'), await bundle(entry, policy))
  const port = chosen ?? (await freePort())
  const bindings = Object.entries(vars)
    .map(([name, value]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(value)})`)
    .join(', ')
  await writeFile(
    join(directory, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "${COMPATIBILITY_DATE}",
      compatibilityFlags = ["enable_request_signal"],
      bindings = [${bindings}])),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
`,
  )
  const child = spawn(WORKERD, ['serve', join(directory, 'config.capnp')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      log += text
    })
  await listening(child, port, () => log)
  return {
    port,
    pid: child.pid ?? 0,
    log: () => log,
    async stop() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function listening(child: ChildProcess, port: number, log: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`workerd stopped: ${log()}`)
    try {
      await fetch(`http://127.0.0.1:${port}/read-here`)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
