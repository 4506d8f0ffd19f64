/** What grows in the policy, in the number of tokens, and in the number of processes. */
import { sendClosed } from '../load/closed.ts'
import { bearing, orders, type Question, read } from '../load/questions.ts'
import type { Contestant } from '../measure/rounds.ts'
import { type NodeGateway, oursWith, type Started, startOnNode } from '../node/contestants.ts'
import { ORIGIN_BODY } from '../stack/backends.ts'
import type { Stage, Subject } from './table.ts'

/** Returns a gateway as a contestant. */
export const contestantOf = (
  { gateway: { id, title }, pid, url }: Started,
  questions: readonly Question[],
  late: number,
): Contestant => ({ id, title, pid, url, questions, expected: { origin: 1, redis: 0, late } })

/** Starts our gateway with another policy, and returns it as a contestant. */
async function startWith(
  stage: Stage,
  gateway: NodeGateway,
  questions: readonly Question[],
): Promise<Contestant> {
  return contestantOf(await startOnNode(stage, gateway, stage), questions, stage.connections)
}

/** Calls of one path by all callers in turn. */
const callsOf = (path: string, tokens: readonly string[], at: number): Question => ({
  ...{ method: 'GET', path, status: 200, answer: ORIGIN_BODY },
  headers: bearing(tokens[at % tokens.length] ?? ''),
})

/** Routes that are requested, evenly distributed over all. */
const REQUESTED = 500

export const routes: Subject = {
  id: 'routes',
  title: 'routes of the policy',
  sizes: [10, 100, 1_000, 2_000],
  start(stage, size) {
    const count = Math.min(size, REQUESTED)
    const questions = Array.from({ length: count }, (_, at) => {
      const route = Math.floor((at * size) / count)
      return callsOf(`/area-${route}/orders?limit=20`, stage.tokens.writers, at)
    })
    return startWith(stage, oursWith('routes', size), questions)
  },
}

export const limits: Subject = {
  id: 'limits',
  title: 'limits of a route',
  sizes: [1, 2, 4, 8],
  start: (stage, size) =>
    startWith(stage, oursWith('limits', size), orders('read', stage.tokens.writers)),
}

export const processes: Subject = {
  id: 'processes',
  title: 'processes on one port',
  sizes: [1, 2],
  aim: { at: 'most', value: 1.18, stretch: 1.05 },
  start: (stage, size) =>
    startWith(
      stage,
      oursWith('processes', size, size === 1 ? {} : { PROCESSES: String(size) }),
      orders('read', stage.tokens.writers),
    ),
}

/** Tokens of one round: more than it can send. */
const OF_ROUND = 20_000

export const tokens: Subject = {
  id: 'tokens',
  title: 'tokens in use',
  sizes: [1_000, 10_000, 100_000, 1_000_000],
  async start(stage, size) {
    const { ground, onProgress, connections } = stage
    const started = await startOnNode(stage, oursWith('tokens', size), stage)
    onProgress(`signing ${size.toLocaleString('en')} tokens`)
    const minted = await ground.mint(Math.ceil(size / connections) * connections)
    const all = minted.map(read)
    onProgress('sending each of them once')
    await sendClosed({ url: started.url, questions: all, connections, until: 'once' })
    const count = Math.min(all.length, OF_ROUND)
    return {
      ...contestantOf(started, all.slice(0, count), connections),
      // Each round sends others, so that all of them stay in use.
      async prepare(round) {
        const from = ((round - 1) * count) % all.length
        return [...all.slice(from), ...all.slice(0, from)].slice(0, count)
      },
    }
  },
}
