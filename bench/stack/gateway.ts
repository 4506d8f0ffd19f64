/** Starts gateways under `workerd serve`, with their dependencies and callers. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { type Backends, startBackends } from './backends.ts'
import { type Bundle, bundleOnce, REQUESTS_CONFIG } from './bundle.ts'
import { type Credentials, createCredentials, PUBLIC_URL } from './credentials.ts'
import { startWorkerd } from './workerd.ts'

export interface StartContext {
  /** Temporary directory; removed afterwards. */
  readonly directory: string
  /** Every started process is deferred here. */
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  readonly onProgress: (what: string) => void
}

export function gatewayVariables(
  { originUrl, redis }: Backends,
  signingKeys: string,
): Readonly<Record<string, string>> {
  return {
    UPSTASH_REDIS_REST_URL: redis.url,
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    PUBLIC_URL,
    ORIGIN_URL: originUrl,
    SIGNING_KEYS: signingKeys,
  }
}

/** `host:port` of the origin, which also receives the batches of the audit queue. */
export const queueAddressOf = ({ originUrl }: Backends): string => new URL(originUrl).host

export interface Ground extends Credentials {
  readonly backends: Backends
}

export async function startGround(
  { shutdown }: Pick<StartContext, 'shutdown'>,
  algorithms?: readonly string[],
): Promise<Ground> {
  const backends = await startBackends()
  shutdown.defer(backends.close)
  shutdown.signal.throwIfAborted()
  return { backends, ...(await createCredentials(backends, algorithms)) }
}

/** A gateway under `workerd serve` with its backends and callers. */
export interface RunningGateway extends Ground {
  /** The workerd process with all isolates. */
  readonly pid: number
  /** Authority of the inspector; undefined if it is not open. */
  readonly inspector: string | undefined
  /** Returns scheme and authority of an isolate. */
  originOf(name: string): string
  /** Ends the gateway. The backends end with the scenario. */
  close(): Promise<void>
}

export interface GatewayOptions {
  readonly ground: Ground
  readonly bundle: Bundle
  readonly names: readonly string[]
  /** Variables of the Worker in addition to those of every gateway. */
  readonly variables?: Readonly<Record<string, string>>
  /** Opens the inspector, which uses CPU time itself. Default false. */
  readonly inspect?: boolean
}

/** Starts one process. Throws an `Error` of one line if it does not start. */
export async function startGateway(
  { directory, shutdown }: Omit<StartContext, 'onProgress'>,
  { ground, bundle, names, variables = {}, inspect = false }: GatewayOptions,
): Promise<RunningGateway> {
  const { backends, signingKeys } = ground
  const workerd = await startWorkerd({
    bundle,
    directory: mkdtempSync(join(directory, 'gateway-')),
    names,
    variables: { ...gatewayVariables(backends, signingKeys), ...variables },
    inspect,
    queueAddress: queueAddressOf(backends),
  })
  shutdown.defer(workerd.close)
  shutdown.signal.throwIfAborted()
  const { pid, inspector, originOf, close } = workerd
  return { ...ground, pid, inspector, originOf, close }
}

export interface VariantGateway extends RunningGateway {
  /** Returns scheme, authority and first segment of a variant. */
  urlOf(variant: string): string
}

/** Starts variants of the Worker `bench/workers/requests.ts`, an isolate for each. */
export async function startVariants(
  context: StartContext,
  variants: readonly string[],
  variablesOf: (backends: Backends) => Promise<Readonly<Record<string, string>>> = async () => ({}),
): Promise<VariantGateway> {
  context.onProgress('starting')
  const ground = await startGround(context)
  const gateway = await startGateway(context, {
    ground,
    bundle: await bundleOnce(REQUESTS_CONFIG, context.directory),
    names: variants,
    variables: await variablesOf(ground.backends),
  })
  return { ...gateway, urlOf: (variant) => `${gateway.originOf(variant)}/${variant}` }
}
