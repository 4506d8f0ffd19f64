/**
 * Gateways of one checkout that run at the same time. Each has its own directory
 * `.wrangler/portcullis/<port>/`, and detects which others are running.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { replace } from '../private-file.ts'
import { HOST } from './settings.ts'

const LEASE_FILE = 'lease.json'
const PROBE_TIMEOUT_MS = 1_000
/** wrangler's default, so that `wrangler d1` without options finds the database. */
const DEFAULT_STATE = 'state'

/**
 * Proves that an instance is running: a server on loopback `port` sends `nonce` to every
 * connection. Unlike a process id, another process cannot take it over after a crash or restart.
 */
interface Lease {
  readonly port: number
  readonly nonce: string
  /** Name of the directory in `.wrangler/` with this instance's databases. */
  readonly state: string
}

export interface Instance {
  /** For generated files. Empty at first. */
  readonly directory: string
  /**
   * For workerd's databases, which two processes must never share. The directory of the first
   * instance is kept between runs. Those of the others are removed on close.
   */
  readonly stateDirectory: string
  /** Whether no other gateway of this checkout is running. */
  readonly alone: boolean
  /** Ends the lease and removes temporary files. */
  close(): Promise<void>
}

/** Registers a gateway on `gatewayPort` for the checkout at `root`. The port must be free. */
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

  // Announced before the check for others, so that of two concurrent starts neither assumes that it
  // is alone.
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

/** Returns the text that the server on `port` sends, or an empty string. */
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
