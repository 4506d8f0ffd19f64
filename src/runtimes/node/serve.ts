/** Serves a gateway over HTTP on Node. */
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { Misconfigured } from '../../errors.ts'
import {
  composeServices,
  type GatewayEnv,
  type Services,
  tasksOf,
} from '../../gateway/compose-services.ts'
import { createGateway } from '../../gateway/create-gateway.ts'
import type { ListenerParts } from '../../gateway/feature.ts'
import type { Runtime } from '../../gateway/runtime.ts'
import { createInFlightCount, type InFlightCount } from '../../isolate/in-flight.ts'
import { type Policy, requirePolicy } from '../../policy/policy.ts'
import type { Mistake } from '../../problems/mistake.ts'
import { createBackgroundWork } from './background-work.ts'
import { followCertificate, readCertificate } from './certificate.ts'
import { nodeEnvironment } from './environment/node-environment.ts'
import { parseRedisUrl } from './environment/redis-url.ts'
import { serverSettings } from './environment/server-environment.ts'
import { unreadVariables } from './environment/unread-variables.ts'
import { createFurtherListeners } from './further-listeners.ts'
import { listen, type PolicyLimits } from './listen.ts'
import { mistakeOfRuntime } from './other-runtime.ts'
import { type PolicyChange, policyChanged } from './policy-change.ts'
import { policyGauges } from './policy-version.ts'
import { inexactLimits } from './redis/exact-limits.ts'
import { masterMetrics } from './redis-gauges.ts'
import { repeatTasks } from './repeated-tasks.ts'
import { createListeners } from './request-listener.ts'
import { nodeRuntime, type Variables } from './runtime.ts'
import { watchDescriptors } from './system/descriptors.ts'

export interface ServeOptions {
  readonly policy: Policy
  /** The SHA-256 of the policy's files, for metrics, `/-/readyz` and the audit trail. Default: it is not known. */
  readonly policyDigest?: string | undefined
  /** The variables of `docs/environment.md`. Default `process.env`. */
  readonly env?: Variables | undefined
  /** Default: the variable `PORT`, or 8787. 0 selects a free port. */
  readonly port?: number | undefined
  /** The address to listen on. Default: the variable `HOST`, or `127.0.0.1`, which is only this machine. */
  readonly host?: string | undefined
  /** How long `close` waits for requests and for work after responses, in milliseconds. Default 10,000. */
  readonly graceMs?: number | undefined
  /**
   * Receives each decision as its audit event, and the path of the request, which the event never has. For development: a
   * path can be personal data, and has any character that the client sent. Must not throw. Default: nothing.
   */
  readonly decided?: Runtime['decided']
  /** Writes an event as a line of JSON, if the events go to the log. Default: standard output. */
  readonly writeEvent?: Runtime['writeEvent']
}

/** A running gateway. */
export interface Server {
  /** Such as `http://127.0.0.1:8787`. */
  readonly url: string
  /** The further listeners of features, such as `{ name: 'forward-auth', url: 'http://127.0.0.1:8788' }`. */
  readonly listeners: readonly { readonly name: string; readonly url: string }[]
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
  /**
   * Decides new requests by another policy. Connections stay, and requests and open streams that have
   * begun end under the policy that admitted them. The environment is not read again. Resolves when the new
   * policy is used and the audit trail has the change. Throws one `Misconfigured` with all mistakes, or
   * the error of the system if a listener cannot be opened; then the old policy stays.
   */
  reload(policy: Policy, change?: PolicyChange): Promise<void>
}

const DEFAULT_PORT = 8_787
/** Characters of the variable `DEPLOYED_BY`. */
const MAX_BY = 200
const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_GRACE_MS = 10_000

/** Limits of time and size. Slow clients are cut; an upload may take as long as `requestTimeout`. */
export const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  handshakeTimeout: 10_000,
  // Longer than load balancers keep idle connections (60 s), so that they close them, not the gateway.
  keepAliveTimeout: 65_000,
  maxHeaderSize: 32_768,
  // `IncomingRequest` refuses such a request with a problem document. Node's refusal has no content.
  requireHostHeader: false,
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
  policyDigest,
  env,
  port,
  host,
  graceMs = DEFAULT_GRACE_MS,
  decided,
  writeEvent,
}: ServeOptions): Promise<Server> {
  const { composedOf, first, runtime, settings, certificate } = composed({
    policy,
    policyDigest,
    env,
    decided,
    writeEvent,
  })
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
  const openResponses = () => listeners.open()
  // Requests that an old gateway admitted count against the limit of the next one.
  const inFlight = createInFlightCount()
  const countsOfListeners = new Map<string, InFlightCount>()
  function inFlightOf(listener: string): InFlightCount {
    const count = countsOfListeners.get(listener) ?? createInFlightCount()
    countsOfListeners.set(listener, count)
    return count
  }

  /** Builds the gateway of a policy and those behind its further listeners. With those before, they share the counts of load. */
  function gatewaysOf(policy: Policy, services: Services) {
    const checks = [...services.checks, ...runtime.checks, stopping]
    const answering = (services.listeners ?? []).map((listener) => {
      const createListenerGateway: ListenerParts['createGateway'] = ({ routes, ...changes }) =>
        createGateway(
          {
            ...listener.servicesFor(changes),
            checks,
            openResponses,
            inFlight: inFlightOf(listener.name),
          },
          { ...policy, routes },
        )
      return { listener, gateway: listener.open({ createGateway: createListenerGateway }) }
    })
    const shared = { ...services, checks, openResponses, inFlight }
    return { gateway: createGateway(shared, policy), answering }
  }

  const work = createBackgroundWork()
  let used = first
  const gateways = gatewaysOf(policy, first.services)
  let { gateway } = gateways
  const listeners = createListeners(
    { fetch: (request, bindings, context) => gateway.fetch(request, bindings, context) },
    work,
    runtime.withhold,
  )
  const ofPolicy = limitsOf(policy)
  const limits = { ...LIMITS, maxHeaderSize: ofPolicy.maxHeaderSize }
  const secure = certificate && createSecureServer({ ...limits, ...certificate }, listeners.request)
  const http = secure ?? createServer(limits, listeners.request)
  const main = await listen(
    http,
    listeners,
    ofPolicy,
    { port: port ?? settings.PORT ?? DEFAULT_PORT, host: host ?? settings.HOST ?? DEFAULT_HOST },
    secure === undefined ? 'http' : 'https',
  )
  const further = createFurtherListeners({ work, isFromProxy: runtime.isFromProxy, limits: LIMITS })
  const useFirst = await further.prepare(gateways.answering, ofPolicy).catch(async (error) => {
    await main.end(0).then(runtime.close)
    throw error
  })
  useFirst(graceMs)
  runtime.start()
  const endWatch = watchDescriptors()
  let endTasks = repeatTasks(tasksOf(first.services), work.context.waitUntil)
  const reloadCertificate =
    secure && certificate ? followCertificate(secure, settings, certificate) : async () => {}

  let digest = policyDigest
  async function change(next: Policy, { audited = true, ...change }: PolicyChange): Promise<void> {
    if (isClosing) throw new Error('the server is stopping')
    requirePolicy(next)
    const composed = composedOf(next, change.digest, change.by ?? 'reload')
    const { services } = composed
    const { gateway: nextGateway, answering } = gatewaysOf(next, services)
    const ofPolicy = limitsOf(next)
    const useFurther = await further.prepare(answering, ofPolicy)
    gateway = nextGateway
    useFurther(graceMs)
    main.limit(ofPolicy)
    endTasks()
    endTasks = repeatTasks(tasksOf(services), work.context.waitUntil)
    // The old gateway reports its metrics now. It is forgotten when its last response ends.
    used.endWaits()
    used = composed
    const event = policyChanged(Date.now(), digest, change)
    digest = change.digest
    if (audited) await services.auditSink.record(event, work.context.waitUntil)
  }

  /** Changes come one after the other. */
  let changed: Promise<unknown> = Promise.resolve()
  let closed: Promise<void> | undefined
  return {
    url: main.url,
    get listeners() {
      return further.list()
    },
    reloadCertificate,
    reload(next, details = {}) {
      const result = changed.then(() => change(next, details))
      changed = result.catch(() => {})
      return result
    },
    close() {
      isClosing = true
      listeners.closeWebSockets()
      closed ??= changed
        .then(() => {
          endTasks()
          endWatch()
          return Promise.all([main.end(graceMs), ...further.end(graceMs)])
        })
        .then(() => {
          runtime.endWaits()
          return work.settled(graceMs)
        })
        .then(runtime.close)
      return closed
    },
  }
}

const limitsOf = ({ maxHeaderBytes, clientStallSeconds }: Policy): PolicyLimits => ({
  maxHeaderSize: maxHeaderBytes ?? LIMITS.maxHeaderSize,
  stallMs: clientStallSeconds * 1_000,
})

/**
 * Checks a policy, an environment and, with `REDIS_URL`, its Redis as `serve` does. Throws one
 * `Misconfigured` with all mistakes.
 */
export async function check({ policy, env }: Pick<ServeOptions, 'policy' | 'env'>): Promise<void> {
  const { first, runtime } = composed({ policy, env })
  createGateway(first.services, policy)
  await runtime.check().finally(runtime.close)
}

function composed({
  policy,
  policyDigest,
  env = process.env,
  decided,
  writeEvent,
}: Pick<ServeOptions, 'policy' | 'policyDigest' | 'env' | 'decided' | 'writeEvent'>) {
  const mistake = mistakeOfRuntime(process.versions)
  if (mistake !== undefined) throw new Misconfigured('The runtime', [mistake])
  requirePolicy(policy)
  const variables = withoutEmpty(env)
  const runtime = nodeRuntime(variables)
  // Their schema checks them.
  const environment = { ...variables, ...runtime.bindings } as unknown as GatewayEnv
  const settings = serverSettings(variables)
  const withMasters = masterMetrics(runtime)
  /** The names of the variables that the runtime and the features of the policy read. */
  let known: readonly string[] = []
  const environmentOf: NonNullable<Runtime['environment']> = (...given) => {
    const schema = nodeEnvironment(...given)
    known = Object.keys(schema._zod.def.shape)
    return schema
  }
  /** `by`: who or what asked for a policy that replaces the first one. */
  function composedOf(policy: Policy, digest: string | undefined, by?: string): Composed {
    requireExactLimits(policy, variables)
    const loadedSeconds = Math.floor(Date.now() / 1_000)
    const version = digest === undefined ? undefined : { digest, loadedSeconds }
    const gauges = withMasters(policyGauges(version))
    const replaced = new AbortController()
    const sleep = runtime.sleepUntil(replaced.signal)
    const DEPLOYED_BY = by?.slice(0, MAX_BY)
    const given = DEPLOYED_BY === undefined ? environment : { ...environment, DEPLOYED_BY }
    const services = composeServices(given, policy, {
      ...runtime,
      environment: environmentOf,
      gauges,
      policyDigest: digest,
      sleep,
      decided,
      ...(writeEvent && { writeEvent }),
    })
    return { services, endWaits: () => replaced.abort() }
  }
  const mistakes: Mistake[] = []
  const first = collecting(mistakes, () => composedOf(policy, policyDigest))
  const certificate = collecting(mistakes, () => readCertificate(variables))
  if (first === undefined || mistakes.length > 0)
    throw new Misconfigured('The environment', mistakes)
  warnWithoutIssuer(first.services, policy)
  for (const sentence of unreadVariables(variables, known)) console.warn(sentence)
  return { composedOf, first, runtime, settings, certificate }
}

/** Throws `Misconfigured` for limits that a Redis Cluster cannot count. */
function requireExactLimits({ limits }: Policy, { REDIS_URL }: Variables): void {
  if (REDIS_URL === undefined || parseRedisUrl(REDIS_URL)?.lanes === undefined) return
  const mistakes = inexactLimits(limits)
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
}

/** Without an issuer, every token is refused. That is valid: API keys and opaque tokens may come from another gateway. */
function warnWithoutIssuer({ issuers }: Services, { routes }: Policy): void {
  const guarded = routes.filter(({ permission }) => permission !== undefined).length
  if (issuers.length > 0 || guarded === 0) return
  console.warn(
    `ISSUERS: there is no issuer, so no signed token is accepted, and ${guarded} routes require a caller; ` +
      'set ISSUERS to your identity provider, or SIGNING_KEYS',
  )
}

interface Composed {
  readonly services: Services
  /** Ends the waits of its work after responses, so that the work is done now. */
  endWaits(): void
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
