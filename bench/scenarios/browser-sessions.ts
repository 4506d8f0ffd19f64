/** A request with a browser session beside a request with a bearer token, at one gateway. */

import { SESSION_COOKIE } from '../../src/features/sign-in/session.ts'
import { COMMON_HEADERS, expectAnswer, type Question, read } from '../load/questions.ts'
import { type Contestant, measureRounds } from '../measure/rounds.ts'
import { noiseNotes, noneOf, sumOf } from '../measure/statistics.ts'
import { tableOf } from '../node/figures.ts'
import { browserOnNode } from '../node/peers.ts'
import { type RedisUse, withRedisUse } from '../node/redis-use.ts'
import { startAll } from '../peers/start.ts'
import { connectDirectly } from '../relations/direct-redis.ts'
import type { Effort } from '../runtimes.ts'
import { figure, ratioFigure, type Scenario, type ScenarioContext } from '../scenario.ts'
import { openSessions, SIGN_IN_VARIABLES } from '../stack/browser-sessions.ts'
import { bundleOnce, REQUESTS_CONFIG } from '../stack/bundle.ts'
import { mintTokens } from '../stack/credentials.ts'
import { type Ground, startGateway, startGround } from '../stack/gateway.ts'
import { IN_SESSION } from '../workers/variants.ts'

const CONNECTIONS = 20
const SUBJECTS = 50
const EFFORTS = {
  quick: { rounds: 1, seconds: 0.6, warmUpSeconds: 0.5 },
  full: { rounds: 9, seconds: 2, warmUpSeconds: 2 },
} as const satisfies Record<Effort, object>

export const browserSessions: Scenario = {
  id: 'browser-sessions',
  title: 'A browser session and a bearer token',
  measures:
    'One gateway with sign-in, in interleaved rounds: a list of orders for callers with a bearer token, ' +
    'and for the same number of users with a session in a cookie. The routes differ only in the session. ' +
    `The shipped policy, at ${CONNECTIONS} connections. No session is renewed.`,
  answers: [],
  asserts: [
    'Every response is 200 with the body of the origin, which received the identity of the caller or user.',
    'Each request made one call to Redis: on Node, Redis ran one script for each response.',
  ],
  runtimes: ['workerd', 'node'],
  seconds: { quick: 5, full: 60 },

  async run(context) {
    const { effort, runtime, onProgress, shutdown } = context
    const { rounds, seconds, warmUpSeconds } = EFFORTS[effort]
    onProgress('starting')
    const ground = await startGround(context)
    const { backends } = ground
    const tokens = await mintTokens(ground)
    const subjects = Array.from({ length: SUBJECTS }, (_, number) => `user-${number}`)
    const references = await openSessions(backends, subjects, ['writer'])
    const isNode = runtime === 'node'
    const gateway = isNode
      ? await startOnNode(context, ground, tokens)
      : await startOnWorkerd(context, ground)

    const contestantOf = (
      id: string,
      title: string,
      questions: readonly Question[],
    ): Contestant => ({
      id,
      title,
      pid: gateway.pid,
      url: gateway.url,
      questions,
      // Calls over RESP do not pass the REST server, which counts calls.
      expected: { origin: 1, redis: isNode ? 0 : 1, late: CONNECTIONS },
    })
    const bearer = contestantOf('bearer', 'bearer token', tokens.writers.map(withToken))
    const session = contestantOf('session', 'browser session', references.map(inSession))
    // An empty Redis has no scripts. Afterwards, all references are cached.
    for (const { questions, title } of [bearer, session])
      for (const question of questions) await expectAnswer(gateway.url, question, title)

    // On workerd, the REST server counts the calls, and scripts of aborted requests are more.
    const scripts = isNode ? 1 : undefined
    const redis = await connectDirectly(backends.redis.directUrl)
    shutdown.defer(async () => redis.close())
    const uses: Readonly<Record<'bearer' | 'session', RedisUse[]>> = { bearer: [], session: [] }
    const [ofTokens, ofSessions] = await measureRounds(
      [
        withRedisUse(bearer, redis, uses.bearer, scripts),
        withRedisUse(session, redis, uses.session, scripts),
      ],
      {
        rounds,
        seconds,
        warmUpSeconds,
        pace: { connections: CONNECTIONS, mayShed: true },
        backends,
        onProgress,
      },
    )
    await gateway.close()
    if (ofTokens === undefined || ofSessions === undefined) throw new Error('nothing was measured')
    const summaries = [ofTokens, ofSessions]
    const pair = [ofSessions.rounds, ofTokens.rounds] as const
    return {
      figures: [
        ratioFigure('cpu-to-bearer', 'CPU to the bearer token', [...pair, 'cpuMicros'], {
          aim: { at: 'most', value: 1.05 },
        }),
        ratioFigure('p50-to-bearer', 'p50 to the bearer token', [...pair, 'p50Ms']),
        ratioFigure('redis-cpu-to-bearer', 'CPU of Redis to the bearer token', [
          uses.session,
          uses.bearer,
          'cpuMicros',
        ]),
        ...summaries.map(({ id, title, cpuMicros }) =>
          figure(`${id}-cpu`, `${title}: CPU of a request`, cpuMicros, 'us'),
        ),
      ],
      checks: [
        {
          what: 'wrong responses',
          seen: noneOf(sumOf(summaries, (one) => sumOf(one.rounds, ({ requests }) => requests))),
        },
        ...summaries.map(({ id, title }) => ({
          what: `${title}: scripts in Redis for 100 responses`,
          seen: callsOf(uses[id as keyof typeof uses]),
        })),
      ],
      tables: [tableOf(`A session and a token, ${CONNECTIONS} connections`, summaries)],
      notes: noiseNotes(summaries.flatMap((each) => each.rounds)),
      details: { summaries, redisUse: uses },
    }
  },
}

/** A page of the gateway sends both, so that they differ only in the credential. */
const OF_A_PAGE = { 'sec-fetch-site': 'same-origin' } as const

function withToken(token: string): Question {
  const question = read(token)
  return { ...question, headers: { ...question.headers, ...OF_A_PAGE } }
}

function inSession(reference: string): Question {
  const { path, ...question } = read('')
  const cookie = `${SESSION_COOKIE}=${reference}`
  return {
    ...question,
    path: IN_SESSION + path,
    headers: { ...COMMON_HEADERS, cookie, ...OF_A_PAGE },
  }
}

const callsOf = (uses: readonly RedisUse[]): string =>
  (sumOf(uses, ({ scripts }) => 100 * scripts) / uses.length).toFixed(1)

interface Measured {
  readonly pid: number
  readonly url: string
  close(): Promise<void>
}

async function startOnNode(
  { directory, shutdown, onProgress }: ScenarioContext,
  { backends }: Ground,
  tokens: Awaited<ReturnType<typeof mintTokens>>,
): Promise<Measured> {
  const entry = { peers: [browserOnNode], backends, tokens, directory, shutdown, onProgress }
  const [entrant] = (await startAll(entry)).entrants
  if (entrant === undefined) throw new Error(`${browserOnNode.title} does not start`)
  return entrant.running
}

async function startOnWorkerd(context: ScenarioContext, ground: Ground): Promise<Measured> {
  const bundle = await bundleOnce(REQUESTS_CONFIG, context.directory)
  const { pid, originOf, close } = await startGateway(context, {
    ground,
    bundle,
    names: ['browser'],
    variables: SIGN_IN_VARIABLES,
  })
  return { pid, url: `${originOf('browser')}/browser`, close }
}
