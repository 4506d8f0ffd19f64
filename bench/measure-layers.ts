/** `--layers`: what each stage of the pipeline costs, under each runtime. */
import type { PipelineBench } from './bench.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from './bundle.ts'
import { figuresOf, type LayerFigures } from './figures.ts'
import { startLayers } from './layers-workerd.ts'
import type { Runtime } from './options.ts'
import { preflight } from './preflight.ts'
import { REFERENCE_FIGURES, REFERENCE_NOTE } from './reference.ts'
import { layerTable, referenceTable } from './report.ts'
import { measure } from './rounds.ts'
import type { Target } from './target.ts'
import { startWranglerDev } from './wrangler-dev.ts'

/** Prints a table for each runtime, and returns what it knows. Throws for a wrong answer. */
export async function measureLayers(bench: PipelineBench): Promise<object> {
  const { options, backends, tokens, shutdown } = bench
  bench.onProgress('bundling')
  const bundle = await bundleWorker(LAYERS_CONFIG, bench.directory)
  const runtimes: { runtime: Runtime; layers: readonly LayerFigures[] }[] = []
  for (const runtime of options.runtimes) {
    const onProgress = (what: string) => bench.onProgress(`${runtime}: ${what}`)
    onProgress('starting')
    const target = await start(runtime, bundle, bench)
    shutdown.defer(target.close)
    shutdown.signal.throwIfAborted()
    await preflight(target, options.measured, tokens)
    const layers = figuresOf(await measure({ target, backends, tokens, options, onProgress }))
    await target.close()
    console.log(`\n${layerTable(runtime, layers)}\n`)
    runtimes.push({ runtime, layers })
  }
  const [first] = runtimes
  if (first !== undefined) console.log(`${referenceTable(first.runtime, first.layers)}\n`)
  const { request, seconds, warmUpSeconds, rounds, connections } = options
  return {
    options: { request, seconds, warmUpSeconds, rounds, connections },
    runtimes,
    reference: { note: REFERENCE_NOTE, figures: REFERENCE_FIGURES },
  }
}

async function start(
  runtime: Runtime,
  bundle: Bundle,
  { options, backends, tokens: { signingKeys }, directory }: PipelineBench,
): Promise<Target> {
  if (runtime === 'wrangler') return startWranglerDev({ bundle, backends, signingKeys, directory })
  return startLayers({ bundle, backends, signingKeys, layers: options.measured, directory })
}
