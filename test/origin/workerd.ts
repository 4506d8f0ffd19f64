/** Runs a Worker in real workerd, without anything between it and the socket. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { build } from 'esbuild'
import { parse } from 'smol-toml'
import { policyTsconfig } from '../../dev/start/policy-paths.ts'
import { ROOT } from '../harness/process.ts'

const WORKERD = join(import.meta.dirname, '../../node_modules/.bin/workerd')
/** The settings of the shipped Worker. */
const { compatibility_date, compatibility_flags, minify, keep_names } = parse(
  readFileSync(join(ROOT, 'wrangler.toml'), 'utf8'),
)
export const COMPATIBILITY_DATE = String(compatibility_date)
export const COMPATIBILITY_FLAGS = compatibility_flags as string[]
/** The report of workerd that it listens. */
const LISTENS = /"event":"listen","socket":"http","port":(\d+)/

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
  /** Default: workerd chooses a free one. */
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
    minify: minify === true,
    keepNames: keep_names !== false,
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
  port: wanted = 0,
}: WorkerdOptions): Promise<Running> {
  const directory = await mkdtemp(join(tmpdir(), 'portcullis-workerd-'))
  await writeFile(join(directory, 'worker.js'), await bundle(entry, policy))
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
      compatibilityFlags = ${JSON.stringify(COMPATIBILITY_FLAGS)},
      bindings = [${bindings}])),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${wanted}", http = (), service = "main")]
);
`,
  )
  const child = spawn(WORKERD, ['serve', '--control-fd=3', join(directory, 'config.capnp')], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    (stream as Readable).setEncoding('utf8').on('data', (text: string) => {
      log += text
    })
  const port = await portOf(child.stdio[3] as Readable)
  if (port === undefined) {
    await closed
    throw new Error(`workerd stopped: ${log}`)
  }
  await fetch(`http://127.0.0.1:${port}/read-here`)
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

/** Returns the port that the process reports, or undefined if it ends before. No other process can answer in its place. */
async function portOf(reports: Readable): Promise<number | undefined> {
  let text = ''
  for await (const chunk of reports.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += chunk
    const [, port] = LISTENS.exec(text) ?? []
    if (port !== undefined) return Number(port)
  }
  return undefined
}
