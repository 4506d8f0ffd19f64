/** Starts the gateway of a scenario: the full pipeline and its dependencies. */
import { existsSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Shutdown } from '../dev/start/shutdown.ts'
import { type Backends, startBackends } from './backends.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from './bundle.ts'
import { layerOf } from './layers.ts'
import { startLayers } from './layers-workerd.ts'
import { preflight } from './preflight.ts'
import { type BenchTokens, mintTokens } from './tokens.ts'

/** The bundles of this process, by configuration. */
const bundles = new Map<string, Bundle>()

/** Bundles a Worker once for all scenarios of a run, minified as it is deployed. */
export async function bundleOnce(config: string, directory: string): Promise<Bundle> {
  const known = bundles.get(config)
  if (known !== undefined && existsSync(known.file)) return known
  const bundle = await bundleWorker(config, directory)
  bundles.set(config, bundle)
  return bundle
}

export interface FullGatewayOptions {
  /** Temporary directory of the scenario. */
  readonly directory: string
  /** Ends everything that was started. */
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
}

export interface FullGateway {
  /** URL of the full pipeline, with `/orders` and the other routes of the policy below it. */
  readonly url: string
  /** The workerd process, to read its CPU time. */
  readonly pid: number
  readonly backends: Backends
  readonly tokens: BenchTokens
  /** Ends the gateway and its dependencies. */
  close(): Promise<void>
}

/**
 * Starts the gateway under `workerd serve`, with limits that are never reached
 * (`bench/workers/policy.ts`), and checks that it refuses what it must. `orderLoad(gateway.url,
 * 'read', gateway.tokens.writers)` is a load for it. Throws an `Error` of one line.
 */
export async function startFullGateway({
  directory,
  shutdown,
}: FullGatewayOptions): Promise<FullGateway> {
  const layer = layerOf('full')
  const layers = [layer]
  const own = mkdtempSync(join(directory, 'gateway-'))
  const bundle = await bundleOnce(LAYERS_CONFIG, directory)
  const tokens = await mintTokens(join(own, 'keys.env'))
  const backends = await startBackends()
  shutdown.defer(backends.close)
  shutdown.signal.throwIfAborted()
  const { signingKeys } = tokens
  const target = await startLayers({ bundle, backends, signingKeys, layers, directory: own })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  await preflight(target, layers, tokens)
  return {
    url: target.urlOf(layer),
    pid: target.pid,
    backends,
    tokens,
    async close() {
      await target.close()
      await backends.close()
    },
  }
}
