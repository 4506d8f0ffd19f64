/**
 * The gateways of one checkout that run at the same time: each has a directory of its own under
 * `.wrangler/portcullis/<port>/`, and knows which others are alive.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { replace } from '../dev-vars.ts'
import { HOST } from './settings.ts'

const LEASE_FILE = 'lease.json'
const PROBE_TIMEOUT_MS = 1_000
/** wrangler's own default, so that `wrangler d1` without options finds the database. */
const DEFAULT_STATE = 'state'

/**
 * Says that an instance lives: whoever connects to `port` on loopback is told `nonce`. Unlike a
 * process id, it cannot be taken over by a stranger after a crash or a restart.
 */
interface Lease {
  readonly port: number
  readonly nonce: string
  /** Name of the directory under `.wrangler/` that this instance's databases are in. */
  readonly state: string
}

export interface Instance {
  /** For generated files. Empty at first. */
  readonly directory: string
  /**
   * For workerd's databases, which two processes must never share. The first instance's is kept
   * between runs; that of another ends with it.
   */
  readonly stateDirectory: string
  /** No other gateway of this checkout is running. */
  readonly alone: boolean
  /** Ends the lease and removes what is not kept. */
  close(): Promise<void>
}

/** Registers a gateway on `gatewayPort` of the checkout at `root`. The port must be free. */
export async function openInstance(root: string, gatewayPort: number): Promise<Instance> {
  const instances = join(root, '.wrangler', 'portcullis')
  const directory = join(instances, String(gatewayPort))
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })

  const nonce = randomUUID()
  const server = createServer((socket) => socket.on('error', () => {}).end(nonce))
  server.listen(0, HOST)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const announce = (state: string) =>
    replace(join(directory, LEASE_FILE), JSON.stringify({ port, nonce, state } satisfies Lease))

  // Announced before looking around: of two that start at once, neither takes itself for alone.
  announce(DEFAULT_STATE)
  const others = await liveLeases(instances, String(gatewayPort))
  const taken = others.some((other) => other.state === DEFAULT_STATE)
  const state = taken ? `${DEFAULT_STATE}-${gatewayPort}` : DEFAULT_STATE
  if (taken) announce(state)

  const stateDirectory = join(root, '.wrangler', state)
  return {
    directory,
    stateDirectory,
    alone: others.length === 0,
    async close() {
      if (taken) rmSync(stateDirectory, { recursive: true, force: true })
      rmSync(directory, { recursive: true, force: true })
      server.close()
      await once(server, 'close')
    },
  }
}

async function liveLeases(instances: string, except: string): Promise<readonly Lease[]> {
  const leases = await Promise.all(
    readdirSync(instances)
      .filter((name) => name !== except)
      .map((name) => liveLease(join(instances, name, LEASE_FILE))),
  )
  return leases.filter((lease) => lease !== undefined)
}

async function liveLease(path: string): Promise<Lease | undefined> {
  let lease: Lease
  try {
    lease = JSON.parse(readFileSync(path, 'utf8')) as Lease
  } catch {
    return undefined
  }
  return (await wordFrom(lease.port)) === lease.nonce ? lease : undefined
}

/** What the server on `port` says, or an empty string. */
function wordFrom(port: number): Promise<string> {
  return new Promise((resolve) => {
    let word = ''
    const socket = connect({ port, host: HOST, timeout: PROBE_TIMEOUT_MS })
    socket.setEncoding('utf8')
    socket.on('data', (text) => {
      word += text
    })
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => resolve(word))
  })
}
