/** What each stage of the pipeline costs. */
import { join } from 'node:path'
import { startBackends } from '../backends.ts'
import { cpuFigures, layerPlots, layerTable, noise } from '../layer-results.ts'
import { measureLayers, PACED_RATES } from '../measure-layers.ts'
import { USUAL } from '../options.ts'
import { pacedFigures, pacedTable } from '../paced-figures.ts'
import type { Scenario } from '../scenario.ts'
import { mintTokens } from '../tokens.ts'

export const layers: Scenario = {
  id: 'layers',
  title: 'What each stage of the pipeline costs',
  measures:
    'The pipeline, one stage more each time, in interleaved rounds beside a bare proxy: CPU of a ' +
    'request under a closed load, and the time that each stage adds at a fixed rate.',
  answers: [
    'spacetime-full-stack',
    'spacetime-target',
    'spacetime-auth',
    'spacetime-rbac',
    'spacetime-validation',
    'spacetime-limits',
    'spacetime-audit',
  ],
  asserts: [
    'Every layer refuses exactly what its stages refuse, before it is measured.',
    'Every answer is 200 with the body of the origin.',
    'The origin was told who asks in every request of the layers that tell it, and in no other.',
  ],
  runtimes: ['workerd', 'wrangler'],
  seconds: { quick: 16, full: 170 },
  async run({ effort, runtime, directory, shutdown, onProgress, detail = USUAL[effort] }) {
    const backends = await startBackends()
    shutdown.defer(backends.close)
    const tokens = await mintTokens(join(directory, 'keys.env'))
    const { closed, paced } = await measureLayers(
      { options: detail, backends, tokens, directory, shutdown, onProgress },
      runtime,
    )
    await backends.close()
    const { request, seconds, warmUpSeconds, rounds, connections } = detail
    const ratePerSecond = PACED_RATES[runtime]
    const answers = [...closed, ...paced]
      .flatMap((layer): readonly { readonly requests: number }[] => layer.rounds)
      .reduce((sum, round) => sum + round.requests, 0)
    return {
      figures: [...cpuFigures(runtime, closed), ...pacedFigures(paced)],
      checks: [{ what: 'answers that were wrong', seen: `0 of ${answers.toLocaleString('en')}` }],
      tables: [layerTable(closed), pacedTable(paced, ratePerSecond)],
      plots: layerPlots(closed, paced),
      notes: noise(closed),
      details: {
        options: { request, seconds, warmUpSeconds, rounds, connections, ratePerSecond },
        ...{ closed, paced },
      },
    }
  },
}
