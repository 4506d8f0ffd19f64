/** Worker of the scenario `leases` and of profiles. The first segment of the path is the variant. */
import shipped from '../../portcullis.config.ts'
import {
  composeServices,
  createGateway,
  type GatewayEnv,
  type Policy,
  type Services,
} from '../../src/index.ts'
import type { Admission } from '../../src/parts.ts'
import { platformCalls } from './platform-calls.ts'
import { leased, roomy } from './policy.ts'
import { bySegment, type Handler, passthrough } from './routing.ts'
import { VARIANTS, type Variant } from './variants.ts'
import { WATCHED_PATH, watchDeadlines } from './watched.ts'

interface RequestsEnv extends GatewayEnv {
  readonly ORIGIN_URL: string
  /** URL of a proxy before Redis, which the scenario controls. */
  readonly FAR_REDIS_URL?: string
}

const makers: Readonly<Record<Variant, (env: RequestsEnv) => Handler<RequestsEnv>>> = {
  passthrough: () => passthrough,
  platform: () => platformCalls(),
  'platform-redis': () => platformCalls({ redis: true }),
  gateway: (env) => gateway('gateway', env),
  unasked: (env) => gateway('unasked', env, { admission: UNASKED }),
  leased: (env) => gateway('leased', env, {}, leased),
  far: (env) => gateway('far', farOf(env)),
  'leased-far': (env) => gateway('leased-far', farOf(env), {}, leased),
  watched,
}

function watched(env: RequestsEnv): Handler<RequestsEnv> {
  const take = watchDeadlines()
  const own = gateway('watched', env)
  return (request, ...rest) =>
    request.url.endsWith(WATCHED_PATH) ? Response.json(take()) : own(request, ...rest)
}

/** Admits every request without a call, so that the rest of the pipeline is measured. */
const UNASKED: Admission = {
  admit: async () => ({ denial: undefined, limits: [], uncounted: [], observed: [] }),
  admitReference: () => Promise.reject(new Error('references need a call to Redis')),
  recheck: async (callers) => callers.map(() => undefined),
}

const farOf = (env: RequestsEnv): RequestsEnv => ({
  ...env,
  UPSTASH_REDIS_REST_URL: env.FAR_REDIS_URL ?? '',
})

export default bySegment<RequestsEnv>((segment, env) => {
  const variant = VARIANTS.find((known) => known === segment)
  return variant === undefined ? undefined : makers[variant](env)
})

function gateway(
  variant: Variant,
  env: RequestsEnv,
  others: Partial<Services> = {},
  change = (policy: Policy): Policy => policy,
): Handler<RequestsEnv> {
  const policy = change(roomy(shipped, `/${variant}`))
  const app = createGateway({ ...composeServices(env, policy), ...others }, policy)
  return (request, bindings, context) => app.fetch(request, bindings, context)
}
