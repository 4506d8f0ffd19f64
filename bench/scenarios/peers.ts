/** Other gateways, and the one that is written by hand, on the same machine in the same run. */
import { join } from 'node:path'
import { startBackends } from '../backends.ts'
import { LAYERS_CONFIG } from '../bundle.ts'
import { bundleOnce } from '../gateway.ts'
import { CAST } from '../peers/cast.ts'
import { type Entrant, startAll } from '../peers/grounds.ts'
import { HANDWRITTEN_CONFIG } from '../peers/handwritten/start.ts'
import { type Bout, measureAll } from '../peers/measure.ts'
import { ours } from '../peers/ours.ts'
import { makeProbes, tryOut } from '../peers/probes.ts'
import { figuresOf, pacedFiguresOf, type Standing, standingsOf } from '../peers/standings.ts'
import { costTable, featureTable, pacedTable, plotsOf } from '../peers/tables.ts'
import type { Effort, Scenario, ScenarioContext, ScenarioResult } from '../scenario.ts'
import { mintTokens } from '../tokens.ts'

const CONNECTIONS = 20
/** What runs under `workerd serve`. */
const BUNDLED = [LAYERS_CONFIG, HANDWRITTEN_CONFIG]

const LOADS = {
  quick: { warmUpSeconds: 1.2, seconds: 0.6, rounds: 2 },
  full: { warmUpSeconds: 2, seconds: 2.5, rounds: 5 },
} as const satisfies Record<Effort, object>

/** At a rate of this share of the slowest one's peak, everybody is warm already. */
const SHARE_OF_PEAK = 0.5
const PACED = { warmUpSeconds: 0, seconds: 3.5, rounds: 3 }

export const peers: Scenario = {
  id: 'peers',
  title: 'Beside other gateways',
  measures:
    'The same requests with the same ES256 tokens, over the same origin, through this gateway, through ' +
    'a stack of the same libraries as one writes it by hand, and through gateways of others. ' +
    'Rounds are interleaved; a full run also offers all of them the same rate.',
  // What they publish of other machines is no measure where peers run on this one.
  answers: [],
  asserts: [
    'Each answers good, forged, expired, revoked and missing tokens, a caller without the role, a ' +
      'bad query and an ambiguous path as the table says it does, and lets nothing that it refuses ' +
      'reach the origin.',
    'Every answer is 200 with the body of the origin.',
    'The origin has seen every answer, and was told who asks by those that say they tell it.',
    'Each asks Redis as often as it says, but for requests that were broken off at the end.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 20, full: 230 },
  run,
}

async function run(context: ScenarioContext): Promise<ScenarioResult> {
  const { effort, directory, shutdown, onProgress } = context
  const backends = await startBackends()
  shutdown.defer(backends.close)
  const tokens = await mintTokens(join(directory, 'keys.env'))
  onProgress('bundling')
  await Promise.all(BUNDLED.map((config) => bundleOnce(config, directory)))
  const cast = CAST.filter(({ inQuick }) => effort === 'full' || inQuick)
  const { entrants, skipped } = await startAll({
    cast,
    backends,
    tokens,
    directory,
    shutdown,
    onProgress,
  })
  const probes = await makeProbes(tokens, backends)
  let probed = 0
  for (const { contestant, running } of entrants)
    probed += await tryOut(contestant, running, probes, backends)

  const arena = { entrants, backends, tokens: tokens.writers, onProgress }
  const standings = standingsIn(
    entrants,
    await measureAll({ ...arena, load: { connections: CONNECTIONS }, ...LOADS[effort] }),
  )
  const peaks = standings.map(({ median }) => median.requestsPerSecond)
  const ratePerSecond = Math.max(1, Math.floor(Math.min(...peaks) * SHARE_OF_PEAK))
  const paced =
    effort === 'full'
      ? standingsIn(entrants, await measureAll({ ...arena, load: { ratePerSecond }, ...PACED }))
      : []
  for (const { running } of entrants) await running.close()
  await backends.close()

  const all = [...standings, ...paced].flatMap(({ rounds }) => rounds)
  const answers = all.reduce((sum, round) => sum + round.answers, 0)
  return {
    figures: [...figuresOf(standings, ours.id), ...pacedFiguresOf(paced, ours.id)],
    checks: [
      { what: 'probes that were answered wrong', seen: `0 of ${probed}` },
      { what: 'answers that were wrong', seen: `0 of ${answers}` },
    ],
    plots: plotsOf(standings, paced),
    tables: [
      costTable(standings),
      ...(paced.length > 0 ? [pacedTable(paced, ratePerSecond)] : []),
      featureTable(entrants.map(({ contestant }) => contestant)),
    ],
    notes: [
      ...skipped,
      ...NOTES,
      `Others used up to ${Math.max(...all.map(({ otherCores }) => otherCores))} cores meanwhile.`,
    ],
    details: { connections: CONNECTIONS, ...LOADS[effort], standings, ratePerSecond, paced },
  }
}

function standingsIn(
  entrants: readonly Entrant[],
  bouts: ReadonlyMap<Entrant, readonly Bout[]>,
): readonly Standing[] {
  const contests = entrants.map((entrant) => ({
    contestant: entrant.contestant,
    version: entrant.running.version,
    rounds: bouts.get(entrant) ?? [],
  }))
  return standingsOf(contests, ours.id)
}

const NOTES = [
  'HAProxy, Envoy, Fastify and nginx run on one thread each and keep their limits in their own memory; ' +
    'they do less for a request than this gateway does, see the table.',
  'The load is closed: a gateway that is faster lets Redis, the origin and the load take more of the ' +
    'machine. CPU for 1,000 requests depends on that least.',
]
