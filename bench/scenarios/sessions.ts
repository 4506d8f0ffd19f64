/** Log in, verify, log out: many users at once, at one gateway and at several. */
import type { PublishedId } from '../published.ts'
import type { Effort } from '../runtimes.ts'
import type { Scenario, ScenarioContext } from '../scenario.ts'
import { startFleet } from '../sessions/fleet.ts'
import {
  type Run,
  type RunOptions,
  ratesOf,
  runSessions,
  startSenders,
} from '../sessions/measure.ts'
import { resultOf } from '../sessions/result.ts'

interface Plan {
  readonly users: readonly number[]
  readonly peakUsers: number
  readonly warmUpUsers: number
  readonly processes: readonly number[]
  readonly verifies: number
  readonly connections: number
  readonly width: number
}

const PLANS: Readonly<Record<Effort, Plan>> = {
  quick: {
    users: [200],
    peakUsers: 200,
    warmUpUsers: 60,
    processes: [1, 2],
    verifies: 2,
    connections: 128,
    width: 16,
  },
  full: {
    users: [1_000, 5_000, 10_000],
    peakUsers: 1_000,
    warmUpUsers: 300,
    processes: [1, 4],
    verifies: 2,
    connections: 256,
    width: 32,
  },
}

/** New isolates compile first, so many concurrent requests would miss their deadlines. */
const WARM_UP_WIDTH = 4

const ANSWERS = [
  'catalytic-1000',
  'catalytic-5000',
  'catalytic-10000',
  'catalytic-workers',
] as const satisfies readonly PublishedId[]

export const sessions: Scenario = {
  id: 'sessions',
  title: 'Log in, verify, log out',
  measures:
    'Users who are all logged in at the same time: a login (a token of an identity provider is ' +
    'exchanged for a session), two calls, a logout, and the revoked token; at one gateway and at ' +
    'several over one Redis. Each step first at maximum speed, then at a share of that rate.',
  answers: ANSWERS,
  asserts: [
    'Every login returns an access token and a refresh token, every call the origin’s response.',
    'After the logout, a gateway that had cached the token answers 401; with several gateways, it is ' +
      'another one than that of the logout.',
    'The origin receives exactly the calls with valid tokens.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 12, full: 260 },
  async run(context) {
    const plan = PLANS[context.effort]
    const fleet = await startFleet(context, Math.max(...plan.processes))
    const senders = await startSenders(context.shutdown)
    const runs: Run[] = []
    for (const processes of plan.processes)
      runs.push(...(await runAt(context, plan, { fleet, senders, processes })))
    return resultOf(runs)
  },
}

/** Warms up, measures the peak of each step, and offers a share of it for each number of users. */
async function runAt(
  { onProgress }: ScenarioContext,
  { users: sizes, peakUsers, warmUpUsers, verifies, connections, width }: Plan,
  at: Pick<RunOptions, 'fleet' | 'senders' | 'processes'>,
): Promise<readonly Run[]> {
  const common = { ...at, verifies, connections, width }
  const place = at.processes === 1 ? 'one gateway' : `${at.processes} gateways`
  onProgress(`${place}: warming up`)
  await runSessions({ ...common, users: warmUpUsers, rates: undefined, width: WARM_UP_WIDTH })
  onProgress(`${place}: at maximum speed`)
  const peak = await runSessions({ ...common, users: peakUsers, rates: undefined })
  const runs = [peak]
  for (const users of sizes) {
    onProgress(`${place}: ${users.toLocaleString('en')} users`)
    runs.push(await runSessions({ ...common, users, rates: ratesOf(peak) }))
  }
  return runs
}
