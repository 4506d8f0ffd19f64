/**
 * Two gateways on one runtime, started as a user starts them, on one Redis, with an origin and a key
 * set that record their requests.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startRedis } from '../../dev/redis.ts'
import { requireToken } from '../../dev/upstash-rest/auth.ts'
import { connect } from '../../dev/upstash-rest/connection.ts'
import { answerRead } from '../../dev/upstash-rest/routes.ts'
import { withScriptFlags } from '../../dev/upstash-rest/scripts.ts'
import { type Controlled, startControlled } from './control.ts'
import { AUDIENCE, createKey, ISSUER, REMOTE_ISSUER, type TestKey } from './issuer.ts'
import { freePort, ROOT, run } from './process.ts'
import { startRecordedCluster } from './recorded-cluster.ts'
import { redisVars } from './redis.ts'

/** What tests need, as plain data that can be sent to other processes. */
export interface Stack {
  readonly runtime: StackRuntime
  readonly gateways: readonly [string, string]
  /** One Redis behind its REST server, or a cluster. */
  readonly redis: StackRedis
  /** The REST server of Redis, which records its calls. On a cluster: the gates of its nodes. */
  readonly rest: Controlled
  /** Where tests read and write keys: one Redis, or the masters in the order of their slots. */
  readonly redisUrls: readonly [string, ...string[]]
  readonly origin: Controlled
  readonly keySet: Controlled
  /** The key of the issuer with inline keys in the configuration. */
  readonly inlineKey: TestKey
  /** The key of the issuer with keys that the gateway fetches. */
  readonly remoteKey: TestKey
  /** An OAuth client from the configuration with the role `operator`. */
  readonly operator: { readonly id: string; readonly secret: string }
  /** The command and the environment for another gateway of the same system. */
  readonly command: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
}

export interface RunningStack extends Stack {
  close(): Promise<void>
}

/** What the gateways run on. */
export type StackRuntime = 'workerd' | 'node'

export type StackRedis = 'server' | 'cluster'

const READY = 'Portcullis is ready on'
/** How a user starts a gateway on each runtime. */
const COMMANDS = {
  workerd: [process.execPath, `${ROOT}/dev/start.ts`],
  node: [process.execPath, `${ROOT}/dev/start.ts`, '--node'],
} as const
/** On Node the tests are the proxy that names the client's address. */
const ADDRESSES = { workerd: {}, node: { TRUSTED_PROXIES: '127.0.0.1' } } as const

export async function startStack(
  runtime: StackRuntime = 'workerd',
  kind: StackRedis = 'server',
): Promise<RunningStack> {
  const { rest, ...redis } = kind === 'cluster' ? await clusterPart() : await serverPart()
  const origin = await startControlled(({ method, url }) => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ method, url }),
  }))
  const [inlineKey, remoteKey] = [await createKey('inline'), await createKey('remote')]
  const keySet = await startControlled(() => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ keys: [remoteKey.publicJwk] }),
  }))

  const ports = [await freePort(), await freePort()]
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const operator = { id: randomUUID(), secret: randomBytes(32).toString('base64url') }
  const secretSha256 = createHash('sha256').update(operator.secret).digest('base64url')
  const folder = join(ROOT, '.wrangler', `state-shared-${ports[0]}`)
  if (runtime === 'node') await mkdir(folder, { recursive: true })
  const env = {
    ...ADDRESSES[runtime],
    // Gateways on one Redis share the file.
    ...(runtime === 'node' && { AUDIT_DATABASE: `sqlite:${join(folder, 'audit.db')}` }),
    // The same for both: each accepts tokens of the other.
    PUBLIC_URL: urls[0] ?? '',
    CLIENTS: JSON.stringify([
      { id: operator.id, grants: ['client_credentials'], roles: ['operator'], secretSha256 },
    ]),
    ...redis.env,
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [inlineKey.publicJwk] } },
      { issuer: REMOTE_ISSUER, audience: AUDIENCE, jwksUri: `${keySet.url}/jwks.json` },
    ]),
  }
  const gateways = await Promise.all(
    ports.map((port) => run(COMMANDS[runtime], { ...env, PORT: String(port) }, READY)),
  )
  return {
    runtime,
    gateways: [urls[0] ?? '', urls[1] ?? ''],
    redis: kind,
    rest: controlled(rest),
    redisUrls: redis.urls,
    origin: controlled(origin),
    keySet: controlled(keySet),
    inlineKey,
    remoteKey,
    operator,
    command: COMMANDS[runtime],
    env,
    async close() {
      await Promise.all(gateways.map((gateway) => gateway.stop()))
      await Promise.all([origin.close(), keySet.close()])
      await redis.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** What a stack has before its gateways. */
interface RedisPart {
  readonly rest: Controlled
  readonly urls: Stack['redisUrls']
  readonly env: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** A stall of the machine is not an outage. */
const TIMEOUT_MS = 2_000
const FENCE_MS = 2_000

async function serverPart(): Promise<RedisPart> {
  const redis = await startRedis()
  const direct = new Redis(redis.url)
  await direct.flushall()
  direct.disconnect()
  const token = randomBytes(32).toString('base64url')
  const connection = await connect(redis.url)
  const services = { connection: withScriptFlags(connection), requireToken: requireToken(token) }
  // Without a second server behind it: in a burst, each call waits for the work of all others in this process.
  const rest = await startControlled(async ({ url, headers, body }) => {
    const [authorization = ''] = headers.authorization ?? []
    const read = { url, headers: { authorization }, body: Buffer.from(body, 'latin1') }
    const { type, ...answer } = await answerRead(read, services)
    return { ...answer, headers: { 'content-type': type } }
  })
  return {
    rest,
    urls: [redis.url],
    env: redisVars({ url: rest.url, token }, TIMEOUT_MS),
    async close() {
      await rest.close()
      connection.close()
      await redis.close()
    },
  }
}

async function clusterPart(): Promise<RedisPart> {
  const { cluster, url, controlled, close } = await startRecordedCluster(TIMEOUT_MS)
  const [first = '', ...others] = cluster.masters.map(({ port }) => `redis://127.0.0.1:${port}`)
  return {
    rest: controlled,
    urls: [first, ...others],
    env: {
      REDIS_URL: url,
      REDIS_TIMEOUT_MS: String(TIMEOUT_MS),
      REDIS_FENCE_MS: String(FENCE_MS),
      REDIS_REPLICAS_ACKED: '0',
    },
    close,
  }
}

function controlled({ url, controlUrl }: Controlled): Controlled {
  return { url, controlUrl }
}
