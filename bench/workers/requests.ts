/** What the scenarios about requests are asked of: the first segment of the path chooses which. */
import shipped from '#policy'
import {
  type Admission,
  composeServices,
  createGateway,
  type GatewayEnv,
  type Policy,
  type Services,
} from '../../src/index.ts'
import { platformCalls } from './platform-calls.ts'
import { cachingPolicy, relatedPolicy } from './relations-policy.ts'
import { leasedPolicy, requestsPolicy } from './requests-policy.ts'
import { VARIANTS, type Variant } from './variants.ts'

interface RequestsEnv extends GatewayEnv {
  readonly ORIGIN_URL: string
  /** An origin that a scenario has in its hands. */
  readonly OTHER_ORIGIN_URL?: string
  /** A way to Redis that a scenario has in its hands. */
  readonly FAR_REDIS_URL?: string
}

type Handler = (
  request: Request,
  env: RequestsEnv,
  context: ExecutionContext,
) => Response | Promise<Response>

/** Where the path begins cannot be sooner than after `http://`. */
const SCHEME_LENGTH = 'http://'.length

const makers: Readonly<Record<Variant, (env: RequestsEnv) => Handler>> = {
  passthrough: () => passthrough,
  platform: platformCalls,
  gateway: (env) => gateway('gateway', env),
  crowded: (env) =>
    gateway('crowded', { ...env, ORIGIN_URL: env.OTHER_ORIGIN_URL ?? '' }, {}, (policy) => ({
      ...policy,
      maxConcurrentRequests: 1,
    })),
  unasked: (env) => gateway('unasked', env, { admission: UNASKED }),
  leased: (env) => gateway('leased', env, {}, leasedPolicy),
  far: (env) => gateway('far', farOf(env)),
  'leased-far': (env) => gateway('leased-far', farOf(env), {}, leasedPolicy),
  related: (env) => gateway('related', env, {}, relatedPolicy),
  'related-cached': (env) => gateway('related-cached', env, {}, cachingPolicy),
  'related-leased': (env) =>
    gateway('related-leased', env, {}, (policy, prefix) =>
      leasedPolicy(cachingPolicy(policy, prefix)),
    ),
}

/** Lets everybody in: what is left then is the rest of the pipeline. */
const UNASKED: Admission = {
  admit: async () => ({ denial: undefined, limits: [], uncounted: [], observed: [] }),
  admitReference: () => Promise.reject(new Error('a reference has to be asked about')),
}

const farOf = (env: RequestsEnv): RequestsEnv => ({
  ...env,
  UPSTASH_REDIS_REST_URL: env.FAR_REDIS_URL ?? '',
})

const handlers = new Map<string, Handler>()

export default {
  fetch(request, env, context) {
    const { url } = request
    const path = url.indexOf('/', SCHEME_LENGTH)
    const name = url.slice(path + 1, url.indexOf('/', path + 1))
    let handler = handlers.get(name)
    if (handler === undefined) {
      const variant = VARIANTS.find((known) => known === name)
      if (variant === undefined) return new Response('no such variant', { status: 404 })
      handler = makers[variant](env)
      handlers.set(name, handler)
    }
    return handler(request, env, context)
  },
} satisfies ExportedHandler<RequestsEnv>

function gateway(
  variant: Variant,
  env: RequestsEnv,
  others: Partial<Services> = {},
  change = (policy: Policy, _prefix: string): Policy => policy,
): Handler {
  const prefix = `/${variant}`
  const policy = change(requestsPolicy(shipped, prefix), prefix)
  const app = createGateway({ ...composeServices(env, policy), ...others }, policy)
  return (request, bindings, context) => app.fetch(request, bindings, context)
}

/** The least that a proxy can do. */
function passthrough(request: Request, { ORIGIN_URL }: RequestsEnv): Promise<Response> {
  const { url } = request
  return fetch(ORIGIN_URL + url.slice(url.indexOf('/', SCHEME_LENGTH)), request)
}
