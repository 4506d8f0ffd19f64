/** Other gateways, and a handwritten one, on the same machine in the same run. */
import { orders } from '../load/questions.ts'
import { type Contestant, measureRounds, type Summary } from '../measure/rounds.ts'
import { noneOf, sumOf } from '../measure/statistics.ts'
import {
  costTable,
  featureTable,
  figuresOf,
  pacedFiguresOf,
  pacedTable,
  plotsOf,
  standingsOf,
} from '../peers/figures.ts'
import { HANDWRITTEN_CONFIG } from '../peers/handwritten/start.ts'
import { ours } from '../peers/ours.ts'
import { makeProbes, tryOut } from '../peers/probes.ts'
import { type Entrant, PEERS, startAll } from '../peers/start.ts'
import type { Effort } from '../runtimes.ts'
import type { Scenario, ScenarioContext, ScenarioResult } from '../scenario.ts'
import { bundleOnce, LAYERS_CONFIG } from '../stack/bundle.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

const CONNECTIONS = 20
/** Workers under `workerd serve`. */
const BUNDLED = [LAYERS_CONFIG, HANDWRITTEN_CONFIG]

const LOADS = {
  quick: { warmUpSeconds: 1.2, seconds: 0.6, rounds: 2 },
  full: { warmUpSeconds: 2, seconds: 2.5, rounds: 7 },
} as const satisfies Record<Effort, object>

/** The fixed rate, as a share of the slowest gateway's peak. */
const SHARE_OF_PEAK = 0.5
const PACED = { seconds: 2.5, rounds: 7 }

export const peers: Scenario = {
  id: 'peers',
  title: 'Comparison with other gateways',
  measures:
    'The same requests with the same ES256 tokens, over the same origin, through this gateway, ' +
    'through a handwritten stack of the same libraries, and through other gateways. Rounds are ' +
    'interleaved; a full run also offers the same rate to all of them.',
  // Their published figures are from other machines. Here they run on this one.
  answers: [],
  asserts: [
    'Each gateway answers good, forged, expired, revoked and missing tokens, a caller without the ' +
      'role, a bad query and an ambiguous path as the table says. No refused request reaches the ' +
      'origin.',
    'Every response is 200 with the body of the origin.',
    'The origin received every request, with the caller’s identity as the table says.',
    'Each gateway calls Redis as often as the table says, except for aborted requests.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 20, full: 330 },
  run,
}

async function run(context: ScenarioContext): Promise<ScenarioResult> {
  const { effort, directory, onProgress } = context
  const ground = await startGround(context)
  const { backends } = ground
  const tokens = await mintTokens(ground)
  onProgress('bundling')
  await Promise.all(BUNDLED.map((config) => bundleOnce(config, directory)))
  const { entrants, skipped } = await startAll({
    ...context,
    backends,
    tokens,
    peers: PEERS.filter(({ inQuick }) => effort === 'full' || inQuick),
  })
  const probes = await makeProbes(tokens, backends)
  let probed = 0
  for (const { peer, running } of entrants) probed += await tryOut(peer, running, probes, backends)

  const contestants = entrants.map((entrant) => peerContestant(entrant, tokens.writers))
  const versionOf = (id: string) =>
    entrants.find(({ peer }) => peer.id === id)?.running.version ?? ''
  const standing = (summaries: readonly Summary[]) => standingsOf(summaries, ours.id, versionOf)
  const common = { backends, onProgress }
  const standings = standing(
    await measureRounds(contestants, {
      ...common,
      ...LOADS[effort],
      pace: { connections: CONNECTIONS },
    }),
  )
  const peaks = standings.map(({ median }) => median.requestsPerSecond)
  const ratePerSecond = Math.max(1, Math.floor(Math.min(...peaks) * SHARE_OF_PEAK))
  const paced =
    effort === 'full'
      ? standing(await measureRounds(contestants, { ...common, ...PACED, pace: { ratePerSecond } }))
      : []
  for (const { running } of entrants) await running.close()

  const all = [...standings, ...paced].flatMap(({ median }) => median.rounds)
  return {
    figures: [...figuresOf(standings, ours.id), ...pacedFiguresOf(paced, ours.id)],
    checks: [
      { what: 'wrong responses to probes', seen: noneOf(probed) },
      { what: 'wrong responses', seen: noneOf(sumOf(all, ({ requests }) => requests)) },
    ],
    plots: plotsOf(standings, paced),
    tables: [
      costTable(standings),
      ...(paced.length > 0 ? [pacedTable(paced, ratePerSecond)] : []),
      featureTable(entrants.map(({ peer }) => peer)),
    ],
    notes: [
      ...skipped,
      'HAProxy, Envoy, Fastify and nginx run on one thread each and keep their limits in their own ' +
        'memory. They do less for a request than this gateway, see the table.',
      'The load is closed: behind a faster gateway, Redis, origin and load use more of the machine. ' +
        'CPU for 1,000 requests is the figure that depends least on it.',
      `Other processes used up to ${Math.max(...all.map(({ otherCores }) => otherCores))} cores.`,
    ],
    details: { connections: CONNECTIONS, ...LOADS[effort], standings, ratePerSecond, paced },
  }
}

export function peerContestant({ peer, running }: Entrant, tokens: readonly string[]): Contestant {
  const { id, title, identifies, redisCalls } = peer
  return {
    id,
    title,
    pid: running.pid,
    url: running.url,
    questions: orders('read', tokens),
    expected: {
      origin: 1,
      redis: redisCalls,
      identified: identifies,
      asserted: id === ours.id,
      late: CONNECTIONS,
    },
  }
}
