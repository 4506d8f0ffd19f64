/** Runs a bundle under `workerd serve`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { HOST } from '../../dev/start/settings.ts'
import { WRANGLER } from '../../dev/start/wrangler.ts'
import { endWithParent } from '../processes/child.ts'
import type { Bundle } from './bundle.ts'

const START_TIMEOUT_MS = 20_000
/** File descriptor on which workerd reports its ports. */
const CONTROL_FD = 3

/** Path of the workerd version that belongs to wrangler. */
export const WORKERD = (createRequire(WRANGLER)('workerd') as { readonly default: string }).default

export interface WorkerdOptions {
  readonly bundle: Bundle
  /** Variables of the Worker. They are passed in the environment, never in a file. */
  readonly variables: Readonly<Record<string, string>>
  /** Names of the services. Each is an isolate of the same bundle with its own socket. */
  readonly names: readonly string[]
  /** `host:port` of the receiver of audit queue batches. */
  readonly queueAddress: string
  readonly directory: string
  /** Opens the inspector, which uses CPU time itself. Default false. */
  readonly inspect?: boolean
}

export interface Workerd {
  /** Returns scheme and authority of a service. */
  originOf(name: string): string
  readonly pid: number
  /** Authority of the inspector; undefined if `inspect` is false. */
  readonly inspector: string | undefined
  close(): Promise<void>
}

/** A message on the control descriptor. */
interface Listening {
  readonly event: string
  readonly socket?: string
  readonly port: number
}

export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const { variables, names, directory, inspect = false } = options
  const file = join(directory, 'workerd.capnp')
  writeFileSync(file, workerdConfig(options))
  const child = spawn(
    WORKERD,
    [
      ...['serve', file, `--control-fd=${CONTROL_FD}`],
      ...(inspect ? [`--inspector-addr=${HOST}:0`] : []),
    ],
    { env: { ...variables }, stdio: ['ignore', 'inherit', 'inherit', 'pipe'] },
  )
  const close = endWithParent(child)
  try {
    const expected = names.length + (inspect ? 1 : 0)
    const listening = await listeningOf(child, expected)
    const ports = new Map(listening.map(({ socket, port }) => [socket, port]))
    const inspector = listening.find(({ event }) => event === 'listen-inspector')
    return {
      originOf: (name) => `http://${HOST}:${ports.get(name)}`,
      pid: child.pid as number,
      inspector: inspector && `${HOST}:${inspector.port}`,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Waits until workerd has reported `count` ports. */
async function listeningOf(child: ChildProcess, count: number): Promise<readonly Listening[]> {
  const listening: Listening[] = []
  const lines = createInterface({ input: child.stdio[CONTROL_FD] as Readable })
  const timer = setTimeout(() => lines.close(), START_TIMEOUT_MS)
  for await (const line of lines) {
    const message = JSON.parse(line) as Listening
    if (message.event.startsWith('listen')) listening.push(message)
    if (listening.length === count) break
  }
  clearTimeout(timer)
  if (listening.length < count) throw new Error('workerd does not start')
  return listening
}

/** Returns the text of a Cap'n Proto configuration. Sockets are bound to free loopback ports. */
function workerdConfig({
  bundle,
  directory,
  names,
  variables,
  queueAddress,
}: WorkerdOptions): string {
  const { compatibilityDate, compatibilityFlags } = bundle
  // Cap'n Proto resolves absolute paths differently.
  const module = relative(directory, bundle.file)
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
${names.map((name) => `    (name = ${text(name)}, worker = .layers),\n`).join('')}\
    (name = "internet", network = (allow = ["public", "private"])),
    (name = "queue", external = (address = ${text(queueAddress)}, http = ())),
  ],
  sockets = [
${names
  .map(
    (name) =>
      `    (name = ${text(name)}, address = "127.0.0.1:0", http = (), service = ${text(name)}),\n`,
  )
  .join('')}\
  ],
);

const layers :Workerd.Worker = (
  modules = [(name = "layers.js", esModule = embed ${text(module)})],
  compatibilityDate = ${text(compatibilityDate)},
  compatibilityFlags = [${compatibilityFlags.map(text).join(', ')}],
  bindings = [
${Object.keys(variables)
  .map((name) => `    (name = ${text(name)}, fromEnvironment = ${text(name)}),\n`)
  .join('')}\
    (name = "AUDIT_QUEUE", queue = "queue"),
  ],
);
`
}

/** Formats a Cap'n Proto string. */
function text(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}
