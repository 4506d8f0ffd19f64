/**
 * Measures a hundred concurrent requests that should cause one call, and an open circuit breaker,
 * which should cause none.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ORIGIN_BODY } from '../backends.ts'
import type { ScenarioContext } from '../scenario.ts'
import { createIssuer, signToken } from '../soak/issuers.ts'
import { createLatencyHistogram } from '../statistics.ts'
import { PUBLIC_URL } from '../tokens.ts'
import { isRight, type Question } from './ask.ts'
import { createCaller } from './caller.ts'
import { type RequestsGateway, startRequestsGateway } from './gateway.ts'
import {
  type HoldingOrigin,
  type OddOrigin,
  startHoldingOrigin,
  startOddOrigin,
} from './odd-origin.ts'
import { problem, read } from './questions.ts'
import type { Variant } from './variants.ts'

const CONCURRENT = 100
const POLL_MS = 20
const PATIENCE_MS = 8_000
/** Time from the last call to Redis until its request waits for the origin. */
const ADMITTED_MS = 100
/** Delays the key set until all requests wait for it. */
const DOWNLOAD_MS = 500
/**
 * Failures that open a shipped circuit breaker, and a time shorter than its shortest open period.
 */
const FAILURES = 5
const GUARDED_MS = 200
const BROKEN_PATH = '/orders/0190a6b4-0000-7000-8000-000000000001'

export interface SingleFlights {
  readonly gateway: RequestsGateway
  /**
   * Origin of the isolate `other`. It closes connections on {@link BROKEN_PATH}, and delays all
   * other responses.
   */
  readonly origin: HoldingOrigin
  /** Key server of the `cold` isolates. */
  readonly keyServer: OddOrigin
  /** Request of a caller of an issuer with configured keys. */
  readonly known: Question
  /** Requests of a hundred callers of an issuer with fetched keys. */
  readonly strangers: readonly Question[]
  /** Isolates without any request so far. */
  readonly coldIsolates: readonly string[]
  close(): Promise<void>
}

/** Starts a gateway with a controllable origin and key set. */
export async function prepareSingleFlights(
  context: ScenarioContext,
  isolates: number,
): Promise<SingleFlights> {
  const origin = await startHoldingOrigin(ORIGIN_BODY, BROKEN_PATH)
  context.shutdown.defer(origin.close)
  const issuer = await createIssuer('cold')
  const keySet = JSON.stringify({ keys: [issuer.publicJwk] })
  const keyServer = await startOddOrigin((response) => {
    setTimeout(() => response.writeHead(200, JSON_HEADERS).end(keySet), DOWNLOAD_MS)
  })
  context.shutdown.defer(keyServer.close)
  const coldIsolates = Array.from({ length: isolates }, (_, index) => `cold-${index}`)
  const jwksUri = `${keyServer.url}/keys`
  const gateway = await startRequestsGateway(context, {
    isolates: {
      other: 'other',
      ...Object.fromEntries(coldIsolates.map((name) => [name, 'gateway' satisfies Variant])),
    },
    variables: {
      OTHER_ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([{ issuer: issuer.issuer, audience: PUBLIC_URL, jwksUri }]),
    },
  })
  const [holder] = await gateway.mint(1)
  const strangers: Question[] = []
  for (let index = 0; index < CONCURRENT; index++) {
    const claims = { sub: `stranger-${index}`, roles: ['writer'], aud: PUBLIC_URL }
    strangers.push(read(await signToken(issuer, claims)))
  }
  return {
    ...{ gateway, origin, keyServer, strangers, coldIsolates },
    known: read(holder?.credential ?? ''),
    async close() {
      await gateway.close()
      await Promise.all([origin.close(), keyServer.close()])
    },
  }
}

/**
 * Counts calls to the origin for a hundred requests, with `coalesce` (in each round) and without.
 */
export async function measureCoalescing(of: SingleFlights, rounds: number) {
  let calls = 0
  for (let round = 1; round <= rounds; round++) {
    calls = await callsOf(of, { ...of.known, path: '/shared' })
    if (calls !== 1) throw new Error(`${CONCURRENT} coalesced requests made ${calls} calls`)
  }
  const callsWithout = await callsOf(of, of.known)
  if (callsWithout !== CONCURRENT)
    throw new Error(`${CONCURRENT} requests that are not coalesced made ${callsWithout} calls`)
  return { calls, callsWithout }
}

/** Releases the origin's response after all requests were admitted. Returns the number of calls. */
async function callsOf(
  { gateway: { backends, urlOf }, origin }: SingleFlights,
  question: Question,
): Promise<number> {
  const before = origin.requests()
  const { calls } = await backends.counts()
  const answers = allAtOnce(urlOf('other'), () => question)
  // Checked below. Until then a rejection must not be unhandled.
  answers.catch(() => {})
  let admitted = 0
  for (let waited = 0; admitted < CONCURRENT && waited < PATIENCE_MS; waited += POLL_MS) {
    await sleep(POLL_MS)
    admitted = (await backends.counts()).calls - calls
  }
  await sleep(ADMITTED_MS)
  const asked = origin.requests() - before
  origin.release()
  // Any further call is one too many, and is answered at once.
  const releasing = setInterval(origin.release, POLL_MS)
  await answers.finally(() => clearInterval(releasing))
  if (admitted < CONCURRENT)
    throw new Error(`only ${admitted} requests were admitted before the origin answered`)
  return Math.max(asked, origin.requests() - before)
}

/** Counts downloads for a hundred requests to each isolate that has no keys of their issuer yet. */
export async function measureColdKeySets(of: SingleFlights) {
  const { gateway, keyServer, strangers, coldIsolates } = of
  let downloads = 0
  for (const name of coldIsolates) {
    const before = keyServer.requests()
    await allAtOnce(gateway.urlOf(name), (at) => strangers[at] as Question)
    downloads = keyServer.requests() - before
    if (downloads !== 1)
      throw new Error(`${CONCURRENT} requests at a cold key set made ${downloads} downloads`)
  }
  return { downloads }
}

/** Sends requests one after another to a route with an origin that closes connections. */
export async function measureOpenBreaker(
  { gateway, origin, known: { headers } }: SingleFlights,
  seconds: number,
) {
  const refused = problem('origin_unreachable', 502, { path: BROKEN_PATH, headers })
  const caller = createCaller(1)
  const latencies = createLatencyHistogram()
  let [probes, guarded, guardedUntilMs] = [0, 0, 0]
  // A request over a kept connection does not open a new one, so both are counted.
  const reached = () => origin.connections() + origin.requests()
  for (let failure = 0; failure < FAILURES; failure++) await askOnce()
  const endMs = performance.now() + seconds * 1_000
  while (performance.now() < endMs) {
    const before = reached()
    const { ms } = await askOnce()
    const isProbe = reached() > before
    if (performance.now() < guardedUntilMs) {
      if (isProbe) throw new Error('an open breaker has let a request through to the origin')
      guarded++
    }
    if (isProbe) {
      probes++
      guardedUntilMs = performance.now() + GUARDED_MS
    } else latencies.record(ms)
  }
  caller.close()
  if (probes === 0 || guarded === 0) throw new Error('the breaker was not seen to be probed')
  return { p50Ms: latencies.percentile(0.5), p99Ms: latencies.percentile(0.99), probes, guarded }

  async function askOnce() {
    const reply = await caller.ask(gateway.urlOf('other'), refused)
    refuseWrong(refused, reply)
    return reply
  }
}

const JSON_HEADERS = { 'Content-Type': 'application/json' }

async function allAtOnce(url: string, questionOf: (index: number) => Question): Promise<void> {
  const caller = createCaller(CONCURRENT)
  try {
    await Promise.all(
      Array.from({ length: CONCURRENT }, async (_, index) => {
        const question = questionOf(index)
        refuseWrong(question, await caller.ask(url, question))
      }),
    )
  } finally {
    caller.close()
  }
}

function refuseWrong(question: Question, { status, body }: { status: number; body: string }): void {
  if (!isRight(question, status, body))
    throw new Error(`${question.path} was answered with ${status} ${body.slice(0, 200)}`)
}
