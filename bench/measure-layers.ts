/** Measures layers under a runtime: at maximum speed, and at a fixed rate. */
import type { PipelineBench } from './bench.ts'
import { LAYERS_CONFIG } from './bundle.ts'
import { figuresOf, type LayerFigures } from './figures.ts'
import { bundleOnce } from './gateway.ts'
import { startLayers } from './layers-workerd.ts'
import type { Runtime } from './options.ts'
import { type PacedLayer, pacedLayers } from './paced-figures.ts'
import { measurePaced } from './paced-rounds.ts'
import { preflight } from './preflight.ts'
import { measure } from './rounds.ts'
import type { Target } from './target.ts'
import { startWranglerDev } from './wrangler-dev.ts'

/** Requests per second, far below the capacity of the slowest layer. */
export const PACED_RATES: Readonly<Record<Runtime, number>> = { workerd: 500, wrangler: 100 }

export interface MeasuredLayers {
  readonly closed: readonly LayerFigures[]
  readonly paced: readonly PacedLayer[]
}

/** Measures the layers. Throws for a wrong response. */
export async function measureLayers(
  bench: PipelineBench,
  runtime: Runtime,
): Promise<MeasuredLayers> {
  const { options, backends, tokens, shutdown, onProgress } = bench
  onProgress('starting')
  const target = await start(bench, runtime)
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  await preflight(target, options.layers, tokens)
  const measurement = { target, backends, tokens, options, onProgress }
  const closed = figuresOf(await measure(measurement))
  const paced = pacedLayers(await measurePaced(measurement, PACED_RATES[runtime]))
  await target.close()
  return { closed, paced }
}

async function start(
  { options, backends, tokens: { signingKeys }, directory }: PipelineBench,
  runtime: Runtime,
): Promise<Target> {
  const bundle = await bundleOnce(LAYERS_CONFIG, directory)
  if (runtime === 'wrangler') return startWranglerDev({ bundle, backends, signingKeys, directory })
  return startLayers({ bundle, backends, signingKeys, layers: options.layers, directory })
}
