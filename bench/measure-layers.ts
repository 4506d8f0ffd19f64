/** Measures layers under a runtime: as fast as they go. */
import type { PipelineBench } from './bench.ts'
import { LAYERS_CONFIG } from './bundle.ts'
import { figuresOf, type LayerFigures } from './figures.ts'
import { bundleOnce } from './gateway.ts'
import { startLayers } from './layers-workerd.ts'
import type { Runtime } from './options.ts'
import { preflight } from './preflight.ts'
import { measure } from './rounds.ts'
import type { Target } from './target.ts'
import { startWranglerDev } from './wrangler-dev.ts'

/** Throws for a wrong answer. */
export async function measureLayers(
  bench: PipelineBench,
  runtime: Runtime,
): Promise<readonly LayerFigures[]> {
  const { options, backends, tokens, shutdown, onProgress } = bench
  onProgress('starting')
  const target = await start(bench, runtime)
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  await preflight(target, options.layers, tokens)
  const layers = figuresOf(await measure({ target, backends, tokens, options, onProgress }))
  await target.close()
  return layers
}

async function start(
  { options, backends, tokens: { signingKeys }, directory }: PipelineBench,
  runtime: Runtime,
): Promise<Target> {
  const bundle = await bundleOnce(LAYERS_CONFIG, directory)
  if (runtime === 'wrangler') return startWranglerDev({ bundle, backends, signingKeys, directory })
  return startLayers({ bundle, backends, signingKeys, layers: options.layers, directory })
}
