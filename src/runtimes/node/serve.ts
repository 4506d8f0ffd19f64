/** Serves a gateway over HTTP on Node. */
import { once } from 'node:events'
import { createServer, type Server as HttpServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Misconfigured } from '../../errors.ts'
import { composeServices, type GatewayEnv, tasksOf } from '../../gateway/compose-services.ts'
import { createGateway } from '../../gateway/create-gateway.ts'
import type { DoorGateway, DoorParts } from '../../gateway/feature.ts'
import { type Policy, requirePolicy } from '../../policy/policy.ts'
import type { Mistake } from '../../problems/mistake.ts'
import { problem, problemResponse } from '../../problems/problem.ts'
import { createBackgroundWork } from './background-work.ts'
import { followCertificate, readCertificate } from './certificate.ts'
import { orderlyEnd } from './orderly-end.ts'
import { repeatTasks } from './repeated-tasks.ts'
import { createListeners, type Listeners, type NodeBindings } from './request-listener.ts'
import { type NodeRuntime, nodeRuntime, type Variables } from './runtime.ts'
import { serverSettings } from './schemas/server-environment.ts'
import { refuseUnreadable } from './unreadable-requests.ts'
import { latestResponses, onHandedOver } from './upgrades.ts'

export interface ServeOptions {
  readonly policy: Policy
  /** The variables of `docs/configuration.md`. Default `process.env`. */
  readonly env?: Variables | undefined
  /** Default: the variable `PORT`, or 8787. 0 selects a free port. */
  readonly port?: number | undefined
  /** The address to listen on. Default: the variable `HOST`, or `127.0.0.1`, which is only this machine. */
  readonly host?: string | undefined
  /** How long `close` waits for requests and for work after responses, in milliseconds. Default 10,000. */
  readonly graceMs?: number | undefined
}

/** A running gateway. */
export interface Server {
  /** Such as `http://127.0.0.1:8787`. */
  readonly url: string
  /** The further listeners of features, such as `{ name: 'forward-auth', url: 'http://127.0.0.1:8788' }`. */
  readonly doors: readonly { readonly name: string; readonly url: string }[]
  /**
   * Accepts no more connections, lets requests end, sends the audit events and the metrics, and
   * then resolves. `/-/readyz` is 503 from the beginning. After the grace period, connections are cut.
   */
  close(): Promise<void>
  /**
   * Reads the files of the certificate now. Without this, changes are found within ten seconds. Resolves
   * when the new certificate is used, or has been refused and logged.
   */
  reloadCertificate(): Promise<void>
}

const DEFAULT_PORT = 8_787
const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_GRACE_MS = 10_000

/** Limits of time and size. Slow clients are cut; an upload may take as long as `requestTimeout`. */
export const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  handshakeTimeout: 10_000,
  // Longer than load balancers keep idle connections (60 s), so that they close them, not the gateway.
  keepAliveTimeout: 65_000,
  maxHeaderSize: 32_768,
  // Finds clients that disappeared without an end of their connection while nothing waits for them.
  keepAlive: true,
  keepAliveInitialDelay: 60_000,
  // How often connections are compared with these times.
  connectionsCheckingInterval: 5_000,
} as const

/**
 * Serves the gateway of a policy. Resolves when it listens. Throws one `Misconfigured` with all
 * mistakes of the environment, or the error of the system if it cannot listen.
 *
 * @example
 * ```ts
 * import { serve } from 'portcullis/node'
 * import policy from './portcullis.config.ts'
 *
 * const server = await serve({ policy })
 * process.once('SIGTERM', () => server.close())
 * ```
 */
export async function serve({
  policy,
  env,
  port,
  host,
  graceMs = DEFAULT_GRACE_MS,
}: ServeOptions): Promise<Server> {
  const { services, runtime, settings, certificate } = composed({ policy, env })
  let isClosing = false
  const stopping = {
    name: 'server',
    async check() {
      if (isClosing) throw new Error('the server is stopping')
    },
  }
  await runtime.check().catch(async (error) => {
    await runtime.close()
    throw error
  })
  const checks = [...services.checks, stopping]
  const openResponses = () => listeners.open()
  const gateway = createGateway({ ...services, checks, openResponses }, policy)
  const work = createBackgroundWork()
  const limits = { ...LIMITS, maxHeaderSize: policy.maxHeaderBytes ?? LIMITS.maxHeaderSize }
  const stallMs = policy.clientStallSeconds * 1_000
  const listeners = createListeners(gateway, work)
  const secure = certificate && createSecureServer({ ...limits, ...certificate }, listeners.request)
  const http = secure ?? createServer(limits, listeners.request)
  const main = await listen(http, listeners, stallMs, {
    port: port ?? settings.PORT ?? DEFAULT_PORT,
    host: host ?? settings.HOST ?? DEFAULT_HOST,
  })
  const opened = await Promise.all(
    (services.doors ?? []).map(async ({ name, servicesFor, open, ...place }) => {
      const createDoorGateway: DoorParts['createGateway'] = ({ routes, ...changes }) =>
        createGateway({ ...servicesFor(changes), checks, openResponses }, { ...policy, routes })
      const behind = open({ createGateway: createDoorGateway })
      const door = createListeners(onlyProxies(behind, runtime), work)
      const server = createServer(limits, door.request)
      return { name, ...(await listen(server, door, stallMs, place)) }
    }),
  ).catch(async (error) => {
    await main.end(0).then(runtime.close)
    throw error
  })
  runtime.start()
  const endTasks = repeatTasks(tasksOf(services), work.context.waitUntil)
  const reloadCertificate =
    secure && certificate ? followCertificate(secure, settings, certificate) : async () => {}
  let closed: Promise<void> | undefined
  return {
    url: urlOf(http, secure === undefined ? 'http' : 'https'),
    doors: opened.map(({ name, url }) => ({ name, url })),
    reloadCertificate,
    close() {
      isClosing = true
      endTasks()
      listeners.closeWebSockets()
      closed ??= Promise.all([main, ...opened].map(({ end }) => end(graceMs)))
        .then(() => {
          runtime.endWaits()
          return work.settled(graceMs)
        })
        .then(runtime.close)
      return closed
    },
  }
}

/** Resolves when a server listens. Throws the error of the system if it cannot. */
async function listen(
  http: HttpServer,
  listeners: Listeners,
  stallMs: number,
  place: { readonly host: string; readonly port: number },
) {
  const latest = latestResponses(http)
  onHandedOver(http, latest, listeners)
  refuseUnreadable(http, latest)
  listeners.watchStalls(http, stallMs, latest)
  const end = orderlyEnd(http)
  // By default, Node silently drops headers above a number. Their size is limited.
  http.maxHeadersCount = 0
  http.listen(place.port, place.host)
  await once(http, 'listening')
  return { end, url: urlOf(http, 'http') }
}

type DoorContext = Parameters<DoorGateway['fetch']>[2]

/** Answers only trusted proxies: a client could ask for the identity headers of any path. */
const onlyProxies = (
  door: DoorGateway,
  { isFromProxy }: NodeRuntime,
): Parameters<typeof createListeners>[0] => ({
  fetch: (request, bindings, context) =>
    isFromProxy((bindings as NodeBindings).incoming)
      ? door.fetch(request, bindings as NodeBindings, context as DoorContext)
      : problemResponse(problem('insufficient_permission', 'Only trusted proxies are answered.')),
})

/**
 * Checks a policy, an environment and, with `REDIS_URL`, its Redis as `serve` does. Throws one
 * `Misconfigured` with all mistakes.
 */
export async function check({ policy, env }: Pick<ServeOptions, 'policy' | 'env'>): Promise<void> {
  const { services, runtime } = composed({ policy, env })
  createGateway(services, policy)
  await runtime.check().finally(runtime.close)
}

function composed({ policy, env = process.env }: Pick<ServeOptions, 'policy' | 'env'>) {
  requirePolicy(policy)
  const variables = withoutEmpty(env)
  const runtime = nodeRuntime(variables)
  // Their schema checks them.
  const environment = { ...variables, ...runtime.bindings } as unknown as GatewayEnv
  const settings = serverSettings(variables)
  const mistakes: Mistake[] = []
  const services = collecting(mistakes, () => composeServices(environment, policy, runtime))
  const certificate = collecting(mistakes, () => readCertificate(variables))
  if (services === undefined || mistakes.length > 0)
    throw new Misconfigured('The environment', mistakes)
  return { services, runtime, settings, certificate }
}

/** Adds the mistakes that `work` throws to the others. */
function collecting<Value>(mistakes: Mistake[], work: () => Value): Value | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    mistakes.push(...error.found)
    return undefined
  }
}

/** Process managers pass an unset variable as an empty text. */
const withoutEmpty = (env: Variables): Variables =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))

function urlOf(http: HttpServer, scheme: 'http' | 'https'): string {
  const { address, family, port } = http.address() as AddressInfo
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
