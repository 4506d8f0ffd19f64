/** The tables of the scenario `tokens`. */
import type { Table } from '../scenario.ts'
import type { Allocations } from './measure-allocations.ts'
import type { CaseFigures } from './measure-cases.ts'
import type { OperationFigures } from './measure-operations.ts'
import type { Peers } from './peers.ts'

/** From here on the process that sends has nothing left to send with. */
const SATURATED_CORES = 0.9
/** Cores that others may use without it showing. */
const QUIET_CORES = 0.1

/** Operations inside an isolate, and the same work elsewhere. */
export function operationTable(
  figures: readonly OperationFigures[],
  allocations: Allocations,
  peers: Peers,
): Table {
  const headings = [
    'operation',
    'us',
    'CPU us',
    'per s',
    'heap bytes',
    ...peers.measured.flatMap(headingsOf),
  ]
  const rows = figures.map(({ id, title, micros, cpuMicros, perSecond }) => [
    title,
    short(micros),
    short(cpuMicros),
    perSecond.toLocaleString('en'),
    allocations[id].toLocaleString('en'),
    ...peers.measured.flatMap(({ micros: of }) => {
      const each = of[id]
      return each === undefined ? ['', ''] : [short(each), (each / micros).toFixed(2)]
    }),
  ])
  return {
    title: 'In an isolate of workerd, one after the other, an empty batch subtracted',
    headings,
    rows,
  }
}

/** What has to be known of the operations and their peers. */
export function operationNotes(peers: Peers): readonly string[] {
  return [
    ...peers.measured.map(({ name, version }) => `${name}: ${version}; one core, same machine.`),
    ...peers.skipped.map(({ name, reason }) => `${name}: skipped (${reason}).`),
    'heap bytes: what one allocates in the isolate, garbage too; buffers off the heap do not count.',
    ...(peers.measured.length > 0 ? ['x: how many times our time the peer takes.'] : []),
  ]
}

/** Cases over HTTP. */
export function caseTable(figures: readonly CaseFigures[]): Table {
  const headings = ['over HTTP', 'req/s', 'p50 ms', 'p95 ms', 'p99 ms', 'Redis calls', 'CPU us']
  const shares = ['CPU s/1,000', 'gateway', 'Redis', 'load']
  const rows = figures.map((each) => [
    each.title,
    each.requestsPerSecond.toLocaleString('en'),
    each.p50Ms.toFixed(2),
    each.p95Ms.toFixed(2),
    each.p99Ms.toFixed(2),
    each.redisCalls.toFixed(2),
    each.cpuMicros.toFixed(0),
    each.cpuSecondsPerThousand.toFixed(3),
    each.gatewayCores.toFixed(2),
    each.redisCores.toFixed(2),
    each.loadCores.toFixed(2),
  ])
  return {
    title:
      'Over HTTP, under workerd serve (one isolate); gateway, Redis, load: cores that each took',
    headings: [...headings, ...shares],
    rows,
  }
}

/** What has to be known of the cases: what is required of them, and how noisy it was. */
export function caseNotes(figures: readonly CaseFigures[]): readonly string[] {
  return [...figures.flatMap(verdict), ...noise(figures)]
}

/** Whether a case does what the product has to. */
export function verdict(figures: CaseFigures): readonly string[] {
  const { title, requestsPerSecond, requiredPerSecond, loadCores } = figures
  if (requiredPerSecond === undefined) return []
  const met = requestsPerSecond >= requiredPerSecond ? 'met' : 'missed'
  const required = requiredPerSecond.toLocaleString('en')
  const reached = requestsPerSecond.toLocaleString('en')
  const bound = loadCores >= SATURATED_CORES ? '; the load could send no more' : ''
  return [`Required: ${title}: ${required}/s: ${met} (${reached}${bound}).`]
}

function headingsOf({ name }: { readonly name: string }): readonly string[] {
  return [`${name} us`, 'x']
}

function noise(figures: readonly CaseFigures[]): readonly string[] {
  const cores = Math.max(...figures.map(({ otherCores }) => otherCores))
  if (cores <= QUIET_CORES) return []
  return [`Other processes kept up to ${cores.toFixed(1)} cores busy meanwhile: take it with care.`]
}

/** Microseconds with as many digits as say something. */
function short(micros: number): string {
  return micros.toFixed(micros < 10 ? 2 : micros < 100 ? 1 : 0)
}
