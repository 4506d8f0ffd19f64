/** The full pipeline from 10 to 300 connections, with large bodies, new tokens, and without a pause. */
import { layerContestant, preflight } from '../layers/contestants.ts'
import { layerOf } from '../layers/layers.ts'
import { startTarget } from '../layers/targets.ts'
import { sendClosed } from '../load/closed.ts'
import { orders, type Question, read } from '../load/questions.ts'
import { inTurn, measureSlices, type Sample, type Summary, summaryOf } from '../measure/rounds.ts'
import { noiseNotes, noneOf, rounded, spreadOf, sumOf } from '../measure/statistics.ts'
import type { PublishedId } from '../published.ts'
import { type Figure, figure, type Scenario } from '../scenario.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

const BODY_BYTES = 10_240
const STEADY_CONNECTIONS = 50
const MIXED_CONNECTIONS = 20
/** Requests of a mixed load. One in five has a token that the gateway has not seen. */
const MIXED_REQUESTS = 1_000
const ONE_IN = 5
const EFFORTS = {
  quick: { rounds: 1, seconds: 0.5, steadySeconds: 1 },
  full: { rounds: 3, seconds: 2.5, steadySeconds: 20 },
} as const

interface Load {
  readonly id: string
  readonly title: string
  readonly connections: number
  readonly hasBody?: boolean
}

const LEVELS: readonly Load[] = [10, STEADY_CONNECTIONS, 300].map((connections) => ({
  id: `c${connections}`,
  title: `${connections} connections`,
  connections,
}))
const BODIES: Load = {
  id: 'payload',
  title: `bodies of 10 KB, ${STEADY_CONNECTIONS} connections`,
  connections: STEADY_CONNECTIONS,
  hasBody: true,
}
const STEADY: Load = {
  id: 'sustained',
  title: `${STEADY_CONNECTIONS} connections without a pause`,
  connections: STEADY_CONNECTIONS,
}

/** Comparable published figures, by the id of a figure. */
const BESIDE: Readonly<Record<string, readonly PublishedId[]>> = {
  'c10-throughput': ['ramparts-connections'],
  'c300-throughput': ['ramparts-connections'],
  'c300-mean': ['ramparts-connections'],
  'c300-ok': ['ramparts-connections'],
  'c50-throughput': ['subzero-full-stack'],
  'c50-p50': ['subzero-full-stack'],
  'c50-p95': ['subzero-full-stack'],
  'payload-throughput': ['ramparts-payload'],
  'sustained-throughput': ['ramparts-sustained'],
  'sustained-ok': ['ramparts-sustained'],
}

export const connections: Scenario = {
  id: 'connections',
  title: 'The full pipeline by connections',
  measures:
    'A closed load of 10 to 300 connections; bodies of 10 KB, which are validated; 50 connections ' +
    'without a pause; and tokens of which one in five is new to the gateway.',
  answers: [
    'ramparts-peak',
    'ramparts-connections',
    'ramparts-payload',
    'ramparts-sustained',
    'subzero-full-stack',
    'subzero-mixed',
  ],
  asserts: [
    'Every response is 200 with the body of the origin, or 503, which is counted separately.',
    'The origin received each request once, with the caller’s identity.',
  ],
  runtimes: ['workerd', 'node'],
  seconds: { quick: 10, full: 75 },

  async run(context) {
    const { effort, runtime, onProgress } = context
    const { rounds, seconds, steadySeconds } = EFFORTS[effort]
    onProgress('starting')
    const ground = await startGround(context)
    const { backends } = ground
    const tokens = await mintTokens(ground)
    const full = layerOf('full')
    const target = await startTarget(runtime, { ...context, ground, tokens, layers: [full] })
    await preflight(target, [full], tokens)
    const gateway = layerContestant(target, full, { request: 'read', tokens })
    // Aborted requests of the previous load may arrive late.
    const late = Math.max(...LEVELS.map(({ connections }) => connections))
    const reads = { ...gateway, expected: { ...gateway.expected, late } }
    const writes = { ...reads, questions: orders('write', tokens.writers).map(padded) }
    const measure = async ({ title, connections, hasBody }: Load, length: number) => {
      const contestant = { ...(hasBody ? writes : reads), title }
      const pace = { connections, mayShed: true }
      const { samples } = await measureSlices([contestant], { pace, seconds: length, backends })
      return samples[0] as Sample
    }
    const loads = [...LEVELS, BODIES]
    for (const load of loads) {
      onProgress(`warming up: ${load.title}`)
      await measure(load, seconds)
    }
    const samples = await inTurn(loads, rounds, (load, round) => {
      onProgress(`round ${round} of ${rounds}: ${load.title}`)
      return measure(load, seconds)
    })
    onProgress(STEADY.title)
    const steady = summaryOf(STEADY, [await measure(STEADY, steadySeconds)])
    const summaries = [
      ...loads.map((load) => summaryOf(load, samples.get(load) ?? [])),
      steady,
    ] as const
    const mixed: Mixed[] = []
    for (let round = 0; round <= rounds; round++) {
      onProgress('four of five tokens cached')
      const fresh = await ground.mint(MIXED_REQUESTS / ONE_IN)
      const { latencies } = await sendClosed({
        url: reads.url,
        questions: mixedOf(
          reads.questions,
          fresh.map(({ credential }) => read(credential)),
        ),
        connections: MIXED_CONNECTIONS,
        until: 'once',
      })
      // The first round is the warm-up.
      if (round > 0) mixed.push({ p50: latencies.percentile(0.5), p95: latencies.percentile(0.95) })
    }
    await target.close()

    const levels = summaries.slice(0, LEVELS.length)
    return {
      figures: [
        figure(
          'peak',
          'most requests a second',
          Math.max(...levels.map(({ requestsPerSecond }) => requestsPerSecond)),
          '1/s',
          { beside: ['ramparts-peak'] },
        ),
        ...summaries.flatMap(figuresOf),
        mixedFigure('p50', mixed),
        mixedFigure('p95', mixed),
      ],
      checks: [
        {
          what: 'wrong responses',
          seen: noneOf(
            sumOf(summaries, (each) => sumOf(each.rounds, ({ requests }) => requests)) +
              mixed.length * MIXED_REQUESTS,
          ),
        },
      ],
      tables: [
        {
          title: 'Closed load',
          headings: ['', 'req/s', 'mean ms', 'p50 ms', 'p95 ms', 'p99 ms', 'ok %', 'CPU us'],
          rows: summaries.map((each) => [
            each.title,
            each.requestsPerSecond.toLocaleString('en'),
            ...(['meanMs', 'p50Ms', 'p95Ms', 'p99Ms'] as const).map((key) => each[key].toFixed(2)),
            okPercent(each).toFixed(2),
            each.cpuMicros.toFixed(0),
          ]),
        },
      ],
      notes: [
        'Under a closed load, latency is about connections divided by requests a second.',
        'The share of cached tokens follows from the load: four of five. In production it depends on how ' +
          'often callers return within five minutes.',
        ...noiseNotes(summaries),
      ],
      details: { summaries, mixed },
    }
  },
}

/** Adds blanks to the body, which the gateway parses and validates. */
function padded(question: Question): Question {
  const { body = '' } = question
  return { ...question, body: body.replace('{', `{${' '.repeat(BODY_BYTES - body.length)}`) }
}

/** Returns known requests, of which every fifth is replaced by a new one. */
function mixedOf(known: readonly Question[], fresh: readonly Question[]): readonly Question[] {
  return Array.from({ length: MIXED_REQUESTS }, (_, index) =>
    index % ONE_IN === 0
      ? (fresh[index / ONE_IN] as Question)
      : (known[index % known.length] as Question),
  )
}

interface Mixed {
  readonly p50: number
  readonly p95: number
}

function mixedFigure(key: keyof Mixed, mixed: readonly Mixed[]): Figure {
  const { median, quartiles } = spreadOf(mixed.map((round) => round[key]))
  return figure(`mixed-${key}`, `tokens, 80 % cached: ${key}`, median, 'ms', {
    beside: ['subzero-mixed'],
    quartiles,
  })
}

function okPercent({ rounds }: Summary): number {
  const right = sumOf(rounds, ({ requests }) => requests)
  return rounded((100 * right) / (right + sumOf(rounds, ({ shed }) => shed)), 3)
}

function figuresOf(summary: Summary): readonly Figure[] {
  const { id, title, requestsPerSecond, meanMs, p50Ms, p95Ms, p99Ms } = summary
  const of = (what: string, label: string, value: number, unit: Figure['unit']) => {
    const beside = BESIDE[`${id}-${what}`]
    return figure(`${id}-${what}`, `${title}: ${label}`, value, unit, beside && { beside })
  }
  return [
    of('throughput', 'throughput', requestsPerSecond, '1/s'),
    of('mean', 'mean', meanMs, 'ms'),
    of('p50', 'p50', p50Ms, 'ms'),
    of('p95', 'p95', p95Ms, 'ms'),
    of('p99', 'p99', p99Ms, 'ms'),
    of('ok', 'answered correctly', okPercent(summary), '%'),
  ]
}
