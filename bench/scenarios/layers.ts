/** What each stage of the pipeline costs. */
import { join } from 'node:path'
import { startBackends } from '../backends.ts'
import { layerFigures, layerTable } from '../layer-results.ts'
import { measureLayers } from '../measure-layers.ts'
import { USUAL } from '../options.ts'
import type { Scenario } from '../scenario.ts'
import { mintTokens } from '../tokens.ts'

export const layers: Scenario = {
  id: 'layers',
  title: 'What each stage of the pipeline costs',
  measures:
    'The pipeline, one stage more each time, in interleaved rounds beside a bare proxy: CPU of the ' +
    'gateway for a request under a closed load.',
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
  seconds: { quick: 15, full: 150 },
  async run({ effort, runtime, directory, shutdown, onProgress, detail = USUAL[effort] }) {
    const backends = await startBackends()
    shutdown.defer(backends.close)
    const tokens = await mintTokens(join(directory, 'keys.env'))
    const measured = await measureLayers(
      { options: detail, backends, tokens, directory, shutdown, onProgress },
      runtime,
    )
    await backends.close()
    const { request, seconds, warmUpSeconds, rounds, connections } = detail
    return {
      ...layerFigures(runtime, measured),
      tables: [layerTable(measured)],
      details: {
        options: { request, seconds, warmUpSeconds, rounds, connections },
        layers: measured,
      },
    }
  },
}
