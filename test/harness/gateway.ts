/**
 * The gateway of a test: over a real Redis, with an issuer whose tokens it trusts, and with an origin that records
 * its requests.
 */
import type { IncomingMessage, RequestListener } from 'node:http'
import type { AuditEvent } from '../../src/audit/event.ts'
import type { Services } from '../../src/gateway/compose-services.ts'
import { composeServices, type GatewayEnv, tasksOf } from '../../src/gateway/compose-services.ts'
import { createGateway, type Gateway } from '../../src/gateway/create-gateway.ts'
import { type Runtime, WORKERS } from '../../src/gateway/runtime.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { serve } from '../../src/runtimes/node/index.ts'
import { startMiniflare } from '../origin/miniflare.ts'
import { startWorkerd } from '../origin/workerd.ts'
import { startHttpServer } from './http-server.ts'
import { createKey, ISSUER, mint, type TestKey, type TokenOptions } from './issuer.ts'
import { connectionOf, lanesOfRun, portsOfLanes } from './lanes.ts'
import { freePort, ROOT, type Running, run } from './process.ts'
import { redisVars, startTestRedis } from './redis.ts'

export const PUBLIC_URL = 'https://gateway.test'
/** Where the gateway may run as a server. */
export const RUNTIMES = ['workerd', 'Node'] as const
/** The Node of the project, which may be newer than that of the machine. */
export const NODE = `${ROOT}/node_modules/node/bin/node`

type Variables = Readonly<Record<string, string | undefined>>

export interface GatewayOptions {
  /**
   * `isolate`: in this process, without a server. `Node`: a server in this process. `process`: a program on Node.
   * `workerd`: a Worker. Default: `isolate`.
   */
  readonly runtime?: 'isolate' | 'Node' | 'process' | 'workerd'
  /** Of isolates, and of a server in this process. */
  readonly policy?: Policy
  /** The path of the program or of the Worker. */
  readonly entry?: string
  /** Answers what reaches the origin, or an origin of the test. Default: an empty list. */
  readonly origin?: RequestListener | { readonly url: string; close(): Promise<unknown> }
  /** Default: a free one. */
  readonly port?: number
  /** `PUBLIC_URL`; `own` is the address of the server. Default: {@link PUBLIC_URL}. */
  readonly publicUrl?: string
  /** The audiences that the issuer's tokens may have; tokens of the test have the first. Default: `PUBLIC_URL`. */
  readonly audience?: readonly [string, ...string[]]
  /** The entries of `ISSUERS`. Default: one that trusts the key. */
  readonly issuers?: (key: TestKey) => readonly object[]
  /** Whether the gateway has a signing key. Default: false. */
  readonly signs?: boolean
  /** The protocol of servers to Redis, or the embedded Redis. Default: REST. */
  readonly redis?: 'rest' | 'resp' | 'embedded'
  /** Gets the commands of each call over REST, as JSON. */
  readonly onRedisCall?: (commands: string) => void
  /** Variables that replace those of the test. */
  readonly variables?: Variables
  /** Lanes of isolates; 0: one server. Default: those of the run. */
  readonly lanes?: number
  /** The binding of a Worker to a D1 database. Default: none. */
  readonly d1?: string
  /** Where that database is stored. Default: it ends with the Worker. */
  readonly d1Folder?: string
  /** Bindings of isolates. */
  readonly bindings?: Partial<GatewayEnv>
}

/** What a request to an isolate has, besides a URL. */
interface Sent {
  readonly method?: string
  readonly headers?: object
  readonly body?: string
}

/** Sends a request to an isolate, and waits for the work behind its response. */
export async function sendTo(app: Pick<Gateway, 'fetch'>, request: Request): Promise<Response> {
  const behind: Promise<unknown>[] = []
  const context = {
    waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
    passThroughOnException() {},
    props: {},
  }
  const response = await app.fetch(request, {}, context)
  await Promise.all(behind)
  return response
}

export interface IsolateOptions {
  /** Gets the audit events. Default: the events of all isolates. */
  readonly sink?: AuditEvent[]
  readonly ports?: Partial<Runtime>
  /** Services that replace those of the environment. */
  readonly services?: Partial<Services>
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>

const emptyList: RequestListener = (request, response) => {
  request.resume().on('end', () => response.end('[]'))
}

/** Starts everything, with an empty Redis. */
export async function startGateway(options: GatewayOptions = {}) {
  const { runtime = 'isolate', policy, redis: protocol = 'rest' } = options
  const kind = protocol === 'embedded' ? protocol : 'auto'
  const redis = await startTestRedis(kind, options.onRedisCall)
  await redis.direct.flushall()
  const requests: IncomingMessage[] = []
  const answer = options.origin ?? emptyList
  const origin =
    typeof answer === 'function'
      ? await startHttpServer((request, response) => {
          requests.push(request)
          return answer(request, response)
        })
      : answer
  const key = await createKey('idp')
  const port = options.port ?? (runtime === 'isolate' ? 0 : await freePort())
  const address = `http://127.0.0.1:${port}`
  const publicUrl = options.publicUrl === 'own' ? address : (options.publicUrl ?? PUBLIC_URL)
  const audience = options.audience ?? [publicUrl]
  const issuers = options.issuers?.(key) ?? [
    { issuer: ISSUER, audience, jwks: { keys: [key.publicJwk] } },
  ]
  const signing = options.signs === true ? [await createKey('gateway')] : []
  const environment = {
    ...redisVars(redis),
    PUBLIC_URL: publicUrl,
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify(issuers),
    ...(signing.length > 0 && {
      SIGNING_KEYS: JSON.stringify({ keys: signing.map(({ privateJwk }) => privateJwk) }),
    }),
    ...options.variables,
  }
  const events: AuditEvent[] = []
  const bodies = new Set<WeakRef<ReadableStream>>()
  const keepBody = ({ body }: Response) => void (body && bodies.add(new WeakRef(body)))
  const lanes = options.lanes ?? lanesOfRun
  const inLanes = lanes > 0 ? portsOfLanes(lanes) : {}

  function compose(
    own = policy,
    bindings: Partial<GatewayEnv> = {},
    { sink = events, ports = {}, services: replaced = {} }: IsolateOptions = {},
  ) {
    if (own === undefined) throw new Error('an isolate needs a policy')
    const env = { ...environment, ...options.bindings, ...bindings } as GatewayEnv
    const services = composeServices(env, own, { ...WORKERS, ...inLanes, ...ports })
    const auditSink = { record: (event: AuditEvent) => void sink.push(event) }
    const app = createGateway({ ...services, auditSink, ...replaced }, own)
    const { fetch } = app
    app.fetch = (...request) => {
      const answered = fetch(...request)
      void Promise.resolve(answered).then(keepBody, () => {})
      return answered
    }
    return { app, services }
  }

  /** Creates an isolate: it shares Redis, the origin and the environment with the others. */
  const isolate = (...given: Parameters<typeof compose>): Gateway => compose(...given).app

  const overResp: Variables = {
    UPSTASH_REDIS_REST_URL: undefined,
    UPSTASH_REDIS_REST_TOKEN: undefined,
    REDIS_URL: redis.redisUrl,
  }
  const ofServer: Variables = {
    ...environment,
    ...(protocol === 'resp' && { ...overResp, ...options.variables }),
  }
  const started: Server[] = []
  async function start(at: number): Promise<Server> {
    const server = await startServer({ ...options, runtime }, ofServer, at)
    started.push(server)
    return server
  }

  async function close(): Promise<void> {
    // An isolate watches a response until its end, with calls to a Redis that is gone. Tests read few bodies.
    for (const body of bodies)
      body
        .deref()
        ?.cancel()
        .catch(() => {})
    await Promise.all(started.map((server) => server.stop()))
    await origin.close()
    await redis.close()
  }

  const first =
    runtime === 'isolate'
      ? undefined
      : await start(port).catch(async (error) => {
          await close()
          throw error
        })
  return {
    redis,
    key,
    port,
    /** The address of the server. */
    url: address,
    publicUrl,
    environment,
    originUrl: origin.url,
    /** The requests that reached the origin. */
    requests,
    /** The audit events of isolates. */
    events,
    isolate,
    /** Creates an isolate with events of its own, in the order of its requests. */
    client(own = policy, bindings: Partial<GatewayEnv> = {}) {
      const sink: AuditEvent[] = []
      const { app, services } = compose(own, bindings, { sink })
      return {
        events: sink,
        /** Runs the work without a request once, as a timer does. */
        async runTasks() {
          for (const task of tasksOf(services)) await task.run((work) => void work)
        },
        /** Sends a request from an address, and waits for the work behind its response. */
        send(path: string, from: string, credential?: string, init: Sent = {}) {
          const headers = {
            'cf-connecting-ip': from,
            ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
            ...init.headers,
          }
          return sendTo(app, new Request(publicUrl + path, { ...init, headers }))
        },
      }
    },
    /** Writes what isolates read. */
    connection: connectionOf(redis, lanes),
    /** The server as a program, if it is one. */
    running: first?.running,
    /** Starts another server over the same Redis and origin. */
    another: async () => start(await freePort()),
    /** Starts a server in place of all. */
    async restart() {
      await Promise.all(started.splice(0).map((server) => server.stop()))
      await start(port)
    },
    /** Signs a token of the issuer. */
    token: ({ claims, ...rest }: TokenOptions = {}) =>
      mint(key, { ...rest, claims: { aud: audience[0], ...claims } }),
    close,
  }
}

/** A gateway that listens. */
export interface Server {
  readonly url: string
  readonly running?: Running
  stop(): Promise<unknown>
}

/** Starts a gateway on one runtime with these variables. */
export async function startServer(
  { runtime, policy, entry = '', d1, d1Folder }: GatewayOptions,
  environment: Variables,
  port: number,
): Promise<Server> {
  const url = `http://127.0.0.1:${port}`
  const vars: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined) vars[name] = value
  if (runtime === 'workerd' && d1 !== undefined)
    return { url, ...(await startMiniflare({ entry, vars, port, d1, folder: d1Folder })) }
  if (runtime === 'workerd') return { url, ...(await startWorkerd({ entry, vars, port })) }
  if (runtime === 'process') {
    const env = { ...vars, PORT: String(port) }
    const running = await run([NODE, entry], env, /listening|ready on \S+\n/)
    return { url, running, stop: running.stop }
  }
  if (policy === undefined) throw new Error('a server in this process needs a policy')
  const server = await serve({ policy, env: vars, port, graceMs: 1_000 })
  return { url, stop: () => server.close() }
}
