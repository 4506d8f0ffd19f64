/** The gateways on Node that are compared, each a process of its own. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../dev/free-port.ts'
import { type Server, startServer } from '../processes/server.ts'
import { type BenchTokens, issuerOf } from '../stack/credentials.ts'
import { type Ground, gatewayVariables, type StartContext } from '../stack/gateway.ts'
import type { ProbeId } from './probes.ts'

/** A limit per subject that is never reached, so that no request is refused during a measurement. */
const ROOMY_LIMIT = 1_000_000_000

/** As the files for self-hosting and `portcullis serve` set them. */
export const FLAGS = [
  '--max-semi-space-size=16',
  '--no-allocation-site-pretenuring',
  '--heap-growing-percent=40',
]

export interface NodeGateway {
  /** Kebab-case; part of the names of figures. */
  readonly id: string
  readonly title: string
  /** The file of this folder that is the process. */
  readonly file: 'bare.ts' | 'by-hand.ts' | 'gateway.ts'
  /** Its response statuses to probes. Default 200. */
  readonly refuses: Readonly<Partial<Record<ProbeId, number>>>
  /** Whether each event is on a disk in the end. */
  readonly isDurable: boolean
  /** Variables in addition to those that all of its file have. `directory` is its own. */
  readonly variables: (directory: string) => Readonly<Record<string, string>>
}

const REFUSES = { missing: 401, forged: 401, expired: 401, revoked: 401, powerless: 403 } as const
const none = () => ({})

export const bare: NodeGateway = {
  id: 'bare',
  title: 'bare proxy',
  file: 'bare.ts',
  refuses: {},
  isDurable: false,
  variables: none,
}

export const byHandLog: NodeGateway = {
  id: 'by-hand-log',
  title: 'by hand, log',
  file: 'by-hand.ts',
  refuses: { ...REFUSES, ambiguous: 404 },
  isDurable: false,
  variables: none,
}

export const byHandDurable: NodeGateway = {
  ...byHandLog,
  id: 'by-hand-durable',
  title: 'by hand, durable',
  isDurable: true,
  variables: (directory) => ({ AUDIT_FILE: join(directory, 'audit.db') }),
}

export const oursLog: NodeGateway = {
  id: 'log',
  title: 'Portcullis, log',
  file: 'gateway.ts',
  refuses: { ...REFUSES, 'bad-query': 422, ambiguous: 400 },
  isDurable: false,
  variables: none,
}

export const oursDurable: NodeGateway = {
  ...oursLog,
  id: 'durable',
  title: 'Portcullis, durable',
  isDurable: true,
  variables: (directory) => ({ AUDIT_DATABASE: `sqlite:${join(directory, 'audit.db')}` }),
}

/** Returns our gateway with its trail in a database of PostgreSQL. Its stream is its own. */
export const oursWithPostgres = (database: string): NodeGateway => ({
  ...oursLog,
  id: 'postgres',
  title: 'Portcullis, PostgreSQL',
  isDurable: true,
  variables: () => ({ AUDIT_DATABASE: database, REDIS_PREFIX: 'pc-postgres:' }),
})

/** Returns our gateway with another policy: see `VARIANTS` of `gateway.ts`. */
export const oursWith = (
  variant: string,
  count: number,
  variables: Readonly<Record<string, string>> = {},
): NodeGateway => ({
  ...oursLog,
  id: `${variant}-${count}`,
  title: `Portcullis, ${variant}: ${count.toLocaleString('en')}`,
  variables: () => ({ VARIANT: variant, COUNT: String(count), ...variables }),
})

export interface Started extends Server {
  readonly gateway: NodeGateway
  /** Where it stores its trail. */
  readonly directory: string
}

/** Starts one, and closes it at shutdown. Throws an `Error` of one line if it does not start. */
export async function startOnNode(
  { directory: parent, shutdown, onProgress }: StartContext,
  gateway: NodeGateway,
  { ground, tokens, limit = ROOMY_LIMIT, flags = [] }: NodeOptions,
): Promise<Started> {
  onProgress(`starting ${gateway.title}`)
  const { backends } = ground
  const directory = join(parent, `${gateway.id}-${limit}`)
  mkdirSync(directory, { recursive: true })
  const { jwks, issuer } = issuerOf(tokens)
  const port = await freePort()
  const common = { REDIS_URL: backends.redis.directUrl, LIMIT: String(limit) }
  const { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN, ...variables } = gatewayVariables(
    backends,
    tokens.signingKeys,
  )
  const ofFile =
    gateway.file === 'gateway.ts'
      ? variables
      : { ORIGIN_URL: backends.originUrl, JWKS: jwks, ISSUER: issuer }
  const server = await startServer({
    program: process.execPath,
    args: [...FLAGS, ...flags, join(import.meta.dirname, gateway.file)],
    env: {
      NODE_ENV: 'production',
      PORT: String(port),
      ...common,
      ...ofFile,
      ...gateway.variables(directory),
    },
    port,
    directory,
  })
  shutdown.defer(server.close)
  shutdown.signal.throwIfAborted()
  return { ...server, gateway, directory }
}

export interface NodeOptions {
  readonly ground: Ground
  readonly tokens: BenchTokens
  /** Requests per subject in 60 s. Default: a limit that is never reached. */
  readonly limit?: number
  /** Flags of Node. */
  readonly flags?: readonly string[]
}
