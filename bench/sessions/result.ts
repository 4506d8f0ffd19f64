/** Figures, tables and the plot of the sessions. */
import { noneOf, rounded, sumOf } from '../measure/statistics.ts'
import type { PublishedId } from '../published.ts'
import { type Figure, figure, type Plot, type ScenarioResult, type Table } from '../scenario.ts'
import { OFFERED_SHARE, type Run, type StepFigures } from './measure.ts'

/** Comparable published figures, by number of users. */
const BESIDE: Readonly<Record<number, readonly PublishedId[]>> = {
  1000: ['catalytic-1000'],
  5000: ['catalytic-5000'],
  10000: ['catalytic-10000'],
}

export function resultOf(runs: readonly Run[]): ScenarioResult {
  const offered = runs.filter(({ pace }) => pace === 'offered')
  const answers = sumOf(runs, ({ all }) => all.answers)
  const revoked = sumOf(runs, ({ steps }) => steps.at(-1)?.answers ?? 0)
  return {
    figures: [
      ...runs.filter(({ pace }) => pace === 'closed').map(peakFigure),
      ...offered.flatMap(offeredFigures),
    ],
    checks: [
      { what: 'wrong responses', seen: noneOf(answers) },
      {
        what: 'tokens that were accepted after their logout',
        seen: noneOf(revoked),
      },
      {
        what: 'users logged in at the same time',
        seen: offered.map(({ sessions }) => sessions.toLocaleString('en')).join(', '),
      },
    ],
    tables: [
      tableOf('At maximum speed', runs, 'closed'),
      tableOf(`At ${OFFERED_SHARE * 100} % of that rate`, runs, 'offered'),
    ],
    plots: offered.length > 0 ? [latencyPlot(offered)] : [],
    notes: [
      'A login is a token exchange (RFC 8693) that opens a session. The gateway handles no passwords, ' +
        'so the figures include no password hash.',
      'All users log in before the first call, and all calls end before the first logout. Latencies ' +
        'at a rate start when a request was due.',
      'All gateways, Redis, the origin and the senders share the cores of one machine. Several ' +
        'gateways show that they act as one, not that they are faster.',
    ],
    details: { runs },
  }
}

const idOf = ({ users, processes }: Run) => `users-${users}-at-${processes}`
const placeOf = ({ processes }: Run) => (processes === 1 ? 'one gateway' : `${processes} gateways`)

const peakFigure = (run: Run): Figure =>
  figure(`peak-at-${run.processes}`, `At maximum speed, ${placeOf(run)}`, run.all.perSecond, '1/s')

function offeredFigures(run: Run): readonly Figure[] {
  const { all, users } = run
  const title = `${users.toLocaleString('en')} users, ${placeOf(run)}`
  const known = BESIDE[users] ?? []
  // The published workers failed because they share no state.
  const failing = run.processes > 1 ? [...known, 'catalytic-workers' as const] : known
  const besideOf = (ids: readonly PublishedId[]) => (ids.length > 0 ? { beside: ids } : {})
  const beside = besideOf(known)
  const id = idOf(run)
  return [
    figure(`${id}-rate`, `${title}: requests`, all.perSecond, '1/s', beside),
    ...([50, 95, 99] as const).map((percent) =>
      figure(`${id}-p${percent}`, `${title}: p${percent}`, all[`p${percent}Ms`], 'ms', beside),
    ),
    figure(`${id}-failed`, `${title}: failed`, failedPercent(all), '%', {
      ...besideOf(failing),
      aim: { at: 'most', value: 0 },
    }),
  ]
}

/** Returns the share of failed requests in percent, with four decimal places. */
export function failedPercent({ answers, failed }: Pick<StepFigures, 'answers' | 'failed'>) {
  return rounded((failed / Math.max(1, answers + failed)) * 100, 4)
}

function tableOf(title: string, runs: readonly Run[], pace: Run['pace']): Table {
  return {
    title,
    headings: [
      ...['users', 'gateways', 'step', 'req/s', 'p50 ms', 'p95 ms', 'p99 ms', 'failed %'],
      ...['CPU us', 'Redis calls'],
    ],
    rows: runs
      .filter((run) => run.pace === pace)
      .flatMap(({ users, processes, steps, all }) =>
        [...steps, all].map((step) => [
          users.toLocaleString('en'),
          String(processes),
          step.step,
          String(step.perSecond),
          ...[step.p50Ms, step.p95Ms, step.p99Ms].map((ms) => ms.toFixed(1)),
          String(failedPercent(step)),
          String(step.cpuMicros),
          step.redisCalls.toFixed(2),
        ]),
      ),
  }
}

function latencyPlot(runs: readonly Run[]): Plot {
  return {
    id: 'latency',
    title: 'Latency of all steps',
    kind: 'bar',
    x: { title: 'users, gateways' },
    y: { title: 'ms', log: true },
    categories: runs.map((run) => `${run.users.toLocaleString('en')}, ${placeOf(run)}`),
    series: (['p50Ms', 'p95Ms', 'p99Ms'] as const).map((name) => ({
      name: name.slice(0, 'p50'.length),
      points: runs.map(({ all }) => all[name]),
    })),
  }
}
