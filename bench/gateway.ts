/** The gateway of a scenario: the full pipeline and a bare proxy, with all that they need. */
import { existsSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Shutdown } from '../dev/start/shutdown.ts'
import { type Backends, startBackends } from './backends.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from './bundle.ts'
import { LAYERS, type Layer } from './layers.ts'
import { startLayers } from './layers-workerd.ts'
import { preflight } from './preflight.ts'
import { type BenchTokens, mintTokens } from './tokens.ts'

/** The Workers that this process has bundled, by configuration. */
const bundles = new Map<string, Bundle>()

/** Bundles a Worker once for all scenarios of a run; minified, as it is deployed. */
export async function bundleOnce(config: string, directory: string): Promise<Bundle> {
  const known = bundles.get(config)
  if (known !== undefined && existsSync(known.file)) return known
  const bundle = await bundleWorker(config, directory)
  bundles.set(config, bundle)
  return bundle
}

export interface FullGatewayOptions {
  /** Scratch of the scenario. */
  readonly directory: string
  /** All that is started is deferred here. */
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  /** Of another gateway, to share them; else an origin and a Redis of its own are started. */
  readonly backends?: Backends
  /** Of another gateway, to share them: two that share tokens take each other's. */
  readonly tokens?: BenchTokens
  /** Ids of layers, each an isolate of its own in the process. Default: passthrough and full. */
  readonly layers?: readonly Layer['id'][]
}

export interface FullGateway {
  /** Of the full pipeline; `/orders` and the other routes of the policy are below it. */
  readonly url: string
  /** Of the bare proxy, in the same process. */
  readonly passthroughUrl: string
  /** Of one of `layers`. */
  urlOf(id: Layer['id']): string
  /** The workerd process, for its CPU; it holds all of `layers`. */
  readonly pid: number
  readonly backends: Backends
  readonly tokens: BenchTokens
  /** Ends the gateway, and the backends if it started them. */
  close(): Promise<void>
}

/**
 * Starts it under `workerd serve`, with limits that nobody reaches (`bench/workers/policy.ts`), and
 * makes sure that every layer refuses what it should. `orderLoad(gateway.url, 'read',
 * gateway.tokens.writers)` is a load for it. Throws an `Error` of one line.
 */
export async function startFullGateway(options: FullGatewayOptions): Promise<FullGateway> {
  const { directory, shutdown, layers: ids = ['passthrough', 'full'] } = options
  const layers = ids.map(layerOf)
  const own = mkdtempSync(join(directory, 'gateway-'))
  const bundle = await bundleOnce(LAYERS_CONFIG, directory)
  const tokens = options.tokens ?? (await mintTokens(join(own, 'keys.env')))
  const backends = options.backends ?? (await startBackends())
  if (options.backends === undefined) shutdown.defer(backends.close)
  shutdown.signal.throwIfAborted()
  const { signingKeys } = tokens
  const target = await startLayers({ bundle, backends, signingKeys, layers, directory: own })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  await preflight(target, layers, tokens)
  const urlOf = (id: Layer['id']) => target.urlOf(layerOf(id))
  return {
    url: urlOf('full'),
    passthroughUrl: urlOf('passthrough'),
    urlOf,
    pid: target.pid,
    backends,
    tokens,
    async close() {
      await target.close()
      if (options.backends === undefined) await backends.close()
    },
  }
}

function layerOf(id: Layer['id']): Layer {
  const layer = LAYERS.find((known) => known.id === id)
  if (layer === undefined) throw new TypeError(`there is no layer "${id}"`)
  return layer
}
