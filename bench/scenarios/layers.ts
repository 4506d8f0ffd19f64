/** Cost of each stage of the pipeline, and of its refusals. */
import { layerContestant, preflight } from '../layers/contestants.ts'
import {
  cpuFigures,
  layerPlots,
  layerTable,
  type PacedLayer,
  pacedFigures,
  pacedTable,
  type Refused,
  refusalFigures,
  refusalTable,
} from '../layers/figures.ts'
import { includes, type Layer, type Stage } from '../layers/layers.ts'
import { isLocal, type Refusal, refusalContestant, refusalsOf } from '../layers/refusals.ts'
import { layersUnder, startTarget } from '../layers/targets.ts'
import { measurePaced, measureRounds, type PacedSample, type Summary } from '../measure/rounds.ts'
import { noiseNotes, noneOf, sumOf } from '../measure/statistics.ts'
import { USUAL } from '../options.ts'
import type { Runtime } from '../runtimes.ts'
import type { Scenario } from '../scenario.ts'
import type { Counts } from '../stack/backends.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

/** Requests per second, far below the capacity of the slowest layer. */
const PACED_RATES: Readonly<Record<Runtime, number>> = { workerd: 500, wrangler: 100, node: 500 }
/** The load must be compiled and its connections opened. */
const PACED_WARM_UP_SECONDS = 1

export const layers: Scenario = {
  id: 'layers',
  title: 'Cost of each stage of the pipeline',
  measures:
    'The pipeline with one more stage each time, in interleaved rounds with a bare proxy: CPU of a ' +
    'request under a closed load, and the time that each stage adds at a fixed rate. Also requests ' +
    'that the full pipeline refuses, except under wrangler. On Node there are only the bare proxy and ' +
    'the full pipeline, each a process.',
  answers: [
    'spacetime-full-stack',
    'spacetime-target',
    'spacetime-auth',
    'spacetime-rbac',
    'spacetime-validation',
    'spacetime-limits',
    'spacetime-audit',
    'ramparts-blocked',
  ],
  asserts: [
    'Before the measurement, every layer refuses exactly what its stages refuse.',
    'Every response is 200 with the body of the origin.',
    'The origin receives the caller’s identity from the layers that send it, and from no other.',
    'A refused request has its status and code, and does not reach the origin.',
  ],
  runtimes: ['workerd', 'wrangler', 'node'],
  seconds: { quick: 20, full: 240 },
  async run(context) {
    const { effort, runtime, onProgress, detail = USUAL[effort] } = context
    const { request, seconds, warmUpSeconds, rounds, connections } = detail
    const chosen = layersUnder(runtime, detail.layers)
    onProgress('starting')
    const ground = await startGround(context)
    const { backends } = ground
    const tokens = await mintTokens(ground)
    const target = await startTarget(runtime, { ...context, ground, tokens, layers: chosen })
    await preflight(target, chosen, tokens)

    const contestants = chosen.map((layer) => layerContestant(target, layer, { request, tokens }))
    const hasRefusals = runtime !== 'wrangler' && chosen.some(({ stage }) => stage === 'full')
    const refusals = hasRefusals ? refusalsOf(tokens) : []
    const refusing = refusals.map((refusal) => refusalContestant(target, refusal))
    const all = await measureRounds([...contestants, ...refusing], {
      rounds,
      seconds,
      warmUpSeconds,
      pace: { connections },
      backends,
      onProgress,
    })
    const closed = all.slice(0, chosen.length)
    const ratePerSecond = PACED_RATES[runtime]
    const paced: PacedLayer[] = contestants.map(({ id, title }) => ({ id, title, rounds: [] }))
    const offer = async (length: number): Promise<readonly PacedSample[]> => {
      const load = { ratePerSecond, seconds: length }
      const { samples, counts } = await measurePaced(contestants, load, backends)
      checkPacedCounts(chosen, samples, counts)
      return samples
    }
    onProgress(`warming up at ${ratePerSecond}/s`)
    await offer(PACED_WARM_UP_SECONDS)
    for (let round = 1; round <= rounds; round++) {
      onProgress(`round ${round} of ${rounds} at ${ratePerSecond}/s: all layers in turn`)
      // Each layer receives as many requests as in a load of its own.
      const samples = await offer(seconds * chosen.length)
      for (const [index, layer] of paced.entries())
        (layer.rounds as PacedSample[]).push(samples[index] as PacedSample)
    }
    const refused: Refused[] = []
    for (const [index, contestant] of refusing.entries()) {
      onProgress(`at ${ratePerSecond}/s: ${contestant.title}`)
      const load = { ratePerSecond, seconds }
      const { samples, counts } = await measurePaced([contestant], load, backends)
      if (counts.requests > 0)
        throw new Error(`${contestant.title}: ${counts.requests} requests reached the origin`)
      const summary = all[chosen.length + index] as Summary
      const refusal = refusals[index] as Refusal
      refused.push({ ...summary, isLocal: isLocal(refusal), paced: samples[0] as PacedSample })
    }
    await target.close()
    const answers = [
      ...all,
      ...paced,
      ...refused.map((each) => ({ rounds: [each.paced] })),
    ].flatMap((layer): readonly { readonly requests: number }[] => layer.rounds)
    return {
      figures: [
        ...cpuFigures(runtime, closed),
        ...pacedFigures(paced),
        ...refusalFigures(closed, refused),
      ],
      checks: [{ what: 'wrong responses', seen: noneOf(sumOf(answers, (one) => one.requests)) }],
      tables: [
        layerTable(closed),
        pacedTable(paced, ratePerSecond),
        ...(refused.length > 0 ? [refusalTable(closed, refused, ratePerSecond)] : []),
      ],
      plots: runtime === 'node' ? [] : layerPlots(closed, paced),
      notes: noiseNotes(closed),
      details: {
        options: { request, seconds, warmUpSeconds, rounds, connections, ratePerSecond },
        closed,
        paced,
        refused,
      },
    }
  },
}

/** Throws unless the origin received each request, with identity and assertion as expected. */
function checkPacedCounts(
  chosen: readonly Layer[],
  samples: readonly PacedSample[],
  { requests, identified, asserted }: Counts,
): void {
  const answered = (part: Stage) =>
    sumOf(
      [...chosen.entries()].filter(([, { stage }]) => includes(stage, part)),
      ([index]) => samples[index]?.requests ?? 0,
    )
  // A request that was repeated after a dropped connection may have reached the origin twice.
  const repeated = requests - answered('passthrough')
  const fits = (count: number, least: number) => count >= least && count <= least + repeated
  if (repeated < 0) throw new Error('not every response came from the origin')
  if (!fits(identified, answered('authenticate')) || !fits(asserted, answered('full')))
    throw new Error(`the origin received ${identified} identities and ${asserted} assertions`)
}
