/** What sessions take of the memory of an isolate, and whether it stays the same under load. */
import type { TokenFormat } from '../../src/tokens/access-grant.ts'
import { cachedBytes, DEFAULT_CACHED_TOKEN_BYTES } from '../../src/tokens/token-cache.ts'
import { startBackends } from '../backends.ts'
import { TOKENS_CONFIG } from '../bundle.ts'
import { bundleOnce } from '../gateway.ts'
import { createCredentials } from '../memory/credentials.ts'
import { openHeap } from '../memory/heap.ts'
import { bytesEach, fill, refuseGrowth, soakFor, type Watched, warmUp } from '../memory/measure.ts'
import { createPresenter } from '../memory/presenter.ts'
import { type Filled, resultOf } from '../memory/result.ts'
import type { Effort, Scenario, ScenarioContext } from '../scenario.ts'
import { gatewayVariables } from '../target.ts'
import { startWorkerd, type Workerd } from '../workerd.ts'

interface Plan {
  /** Credentials shown, by format; all of the first number fit into either cache. */
  readonly counts: Readonly<Record<TokenFormat, readonly number[]>>
  /** Of load, for the slope; 0: none. */
  readonly soakSeconds: number
}

const PLANS: Readonly<Record<Effort, Plan>> = {
  quick: { counts: { jwt: [1_500, 3_000], opaque: [1_500] }, soakSeconds: 0 },
  full: {
    counts: { jwt: [5_000, 10_000, 100_000], opaque: [5_000, 10_000, 50_000] },
    soakSeconds: 180,
  },
}
/** Requests between two readings under load. */
const SLICE = 4_000
/** References have half of the bytes, and a record is counted as a kilobyte: more do not fit. */
const MAX_REFERENCES = 10_000
const SERVICES: readonly TokenFormat[] = ['jwt', 'opaque']

export const memory: Scenario = {
  id: 'memory',
  title: 'Memory of sessions',
  measures:
    'The heap of the isolate of the full pipeline after garbage collection, by the inspector, as ' +
    'thousands of callers show a token of their own for the first time; and in a full run its slope, and ' +
    "that of the process's resident memory, over three minutes of load with 100,000 tokens.",
  answers: ['spacetime-session-memory', 'spacetime-soak'],
  asserts: [
    'Every answer is 200 with the body of the origin.',
    'More tokens than the cache holds take no more heap: 1.25 times that of a full cache at most.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 14, full: 300 },
  async run(context) {
    const { counts, soakSeconds } = PLANS[context.effort]
    const { onProgress } = context
    const { workerd, credentials } = await startWatched(context)
    const filled: Filled[] = []
    for (const format of SERVICES.toReversed()) {
      const watched = await watch(workerd, format, context)
      onProgress(`${format}: issuing`)
      const most = Math.max(...counts[format])
      const [first = '', ...issued] = await credentials.issue(format, most + 1)
      await warmUp(watched, first)
      onProgress(`${format}: showing ${most.toLocaleString('en')}`)
      const levels = await fill(watched, issued, counts[format])
      const fits = format === 'jwt' ? fitting(first) : MAX_REFERENCES
      const isBeyond = most > fits
      if (isBeyond) refuseGrowth(levels, fits)
      const soaks = format === 'jwt' && soakSeconds > 0
      if (soaks) onProgress(`under load for ${soakSeconds} s`)
      filled.push({
        ...{ format, levels, fits, isBeyond, bytesEach: bytesEach(levels) },
        moments: soaks
          ? await soakFor(watched, issued, { seconds: soakSeconds, slice: SLICE })
          : [],
        answered: watched.presenter.answered(),
        repeated: watched.presenter.repeated(),
      })
    }
    return resultOf(filled)
  },
}

/** Tokens like this one that the cache holds by its own account. */
function fitting(token: string): number {
  return Math.floor(DEFAULT_CACHED_TOKEN_BYTES / cachedBytes(token.length))
}

async function startWatched({ directory, shutdown, onProgress }: ScenarioContext) {
  onProgress('starting the gateway')
  const bundle = await bundleOnce(TOKENS_CONFIG, directory)
  const backends = await startBackends()
  shutdown.defer(backends.close)
  const credentials = await createCredentials(backends)
  const workerd = await startWorkerd({
    ...{ bundle, directory, names: SERVICES, inspect: true },
    variables: gatewayVariables(backends, credentials.signingKeys),
    queueAddress: new URL(backends.originUrl).host,
  })
  shutdown.defer(workerd.close)
  shutdown.signal.throwIfAborted()
  return { workerd, credentials }
}

/** Each format has an isolate of its own. */
async function watch(
  { originOf, inspector = '', pid }: Workerd,
  service: TokenFormat,
  { shutdown }: Pick<ScenarioContext, 'shutdown'>,
): Promise<Watched> {
  const url = originOf(service)
  const poke = async () => (await fetch(`${url}/-/healthz`)).text()
  // There is an isolate to ask once it has answered.
  await poke()
  const heap = await openHeap(inspector, service, poke)
  const presenter = createPresenter(url)
  shutdown.defer(async () => {
    heap.close()
    presenter.close()
  })
  return { heap, pid, presenter }
}
