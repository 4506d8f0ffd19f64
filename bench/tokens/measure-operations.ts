/**
 * Measures token operations inside an isolate: time, CPU and allocations. The time is measured from
 * outside, because a Worker's clock does not advance during computation.
 */
import { inTurn } from '../measure/rounds.ts'
import { medianOf, ratio, rounded, sumOf } from '../measure/statistics.ts'
import { type CpuTimes, cpuBetween, cpuTimesOf, totalMicros } from '../processes/proc.ts'
import type { RunningGateway } from '../stack/gateway.ts'
import { openHeap } from '../stack/inspector.ts'
import { startWorkerd, type Workerd, type WorkerdOptions } from '../stack/workerd.ts'
import {
  type BatchAnswer,
  batchPath,
  NOTHING,
  OPERATIONS,
  type Operation,
  type OperationId,
} from './operations.ts'

/** Minimum duration of a batch. Its HTTP request takes about half a millisecond. */
const BATCH_MS = 50
const MAX_BATCH = 1_048_576
const EMPTY_BATCHES = 3
const MAX_ENLARGEMENT = 64
const DIGITS = 3

export type OperationRound = ReturnType<typeof roundOf>

export interface OperationFigures extends OperationRound {
  readonly id: OperationId
  readonly title: string
  readonly rounds: readonly OperationRound[]
}

/** Measures all operations in turn. Returns the medians of the rounds. */
export async function measureOperations(
  workerd: Pick<RunningGateway, 'originOf' | 'pid'>,
  { seconds, rounds }: { readonly seconds: number; readonly rounds: number },
  onProgress: (what: string) => void,
): Promise<OperationFigures[]> {
  const url = workerd.originOf('operations')
  const sizes = new Map<Operation, number>()
  for (const operation of OPERATIONS) {
    onProgress(`warming up: ${operation.title}`)
    sizes.set(operation, await warmUp(url, operation.id, seconds))
  }
  const done = await inTurn([...sizes.keys()], rounds, async (operation, round) => {
    if (operation === OPERATIONS[0]) onProgress(`round ${round} of ${rounds}: operations`)
    const size = sizes.get(operation) ?? 1
    return roundOf(await measureAboveNoise(workerd, { id: operation.id, size, seconds }))
  })
  return [...done].map(([{ id, title }, each]) => ({ id, title, ...mediansOf(each), rounds: each }))
}

export interface RawRound {
  readonly size: number
  readonly batches: number
  readonly batchMicros: number
  readonly emptyMicros: number
  readonly cpu: CpuTimes
}

/** Computes the figures of one operation. Throws a `RangeError` if it took no time. */
export function roundOf({ size, batches, batchMicros, emptyMicros, cpu }: RawRound) {
  const operations = size * batches
  const each = (micros: number) => rounded(Math.max(0, micros) / operations, DIGITS)
  const micros = each(batchMicros - batches * emptyMicros)
  const cpuMicros = each(totalMicros(cpu))
  return { operations, micros, cpuMicros, perSecond: perSecondOf(micros) }
}

function perSecondOf(micros: number): number {
  return rounded(ratio(1_000_000, micros), 0)
}

function mediansOf(rounds: readonly OperationRound[]): OperationRound {
  const micros = medianOf(rounds, 'micros', DIGITS)
  return {
    operations: sumOf(rounds, ({ operations }) => operations),
    micros,
    cpuMicros: medianOf(rounds, 'cpuMicros', DIGITS),
    perSecond: perSecondOf(micros),
  }
}

/** Returns the number of operations in a batch, after V8 has compiled them. */
async function warmUp(url: string, id: OperationId, seconds: number): Promise<number> {
  let size = 1
  for (;;) {
    const ms = (await timeBatch(url, id, size)) / 1000
    if (ms >= Math.min(BATCH_MS, seconds * 1000) || size === MAX_BATCH) return size
    size *= 2
  }
}

/**
 * Repeats with larger batches while a batch takes no longer than an empty one, as on a busy machine.
 * `roundOf` refuses a result that is still too small.
 */
async function measureAboveNoise(
  workerd: Pick<Workerd, 'originOf' | 'pid'>,
  { id, size, seconds }: { id: OperationId; size: number; seconds: number },
): Promise<RawRound> {
  for (let larger = size; ; larger *= 2) {
    const raw = await measureOnce(workerd, { id, size: larger, seconds })
    const isLongEnough = raw.batchMicros > raw.batches * raw.emptyMicros
    if (isLongEnough || larger >= size * MAX_ENLARGEMENT) return raw
  }
}

async function measureOnce(
  { originOf, pid }: Pick<Workerd, 'originOf' | 'pid'>,
  { id, size, seconds }: { id: OperationId; size: number; seconds: number },
): Promise<RawRound> {
  const url = originOf('operations')
  const empty: number[] = []
  while (empty.length < EMPTY_BATCHES) empty.push(await timeBatch(url, NOTHING, size))
  const before = cpuTimesOf(pid)
  let batches = 0
  let batchMicros = 0
  while (batchMicros < seconds * 1_000_000) {
    batchMicros += await timeBatch(url, id, size)
    batches++
  }
  const cpu = cpuBetween(before, cpuTimesOf(pid))
  // A longer time than the shortest one includes waiting.
  return { size, batches, batchMicros, emptyMicros: Math.min(...empty), cpu }
}

/** Returns the microseconds of a batch. Throws an `Error` of one line for a wrong response. */
async function timeBatch(url: string, id: OperationId | typeof NOTHING, size: number) {
  const started = performance.now()
  const response = await fetch(url + batchPath(id, size))
  const text = await response.text()
  const micros = (performance.now() - started) * 1000
  if (response.status !== 200) throw new Error(`${id}: got ${response.status}`)
  const { count, last } = JSON.parse(text) as BatchAnswer
  if (count !== size || last === undefined) throw new Error(`${id}: incomplete batch`)
  return micros
}

const SERVICE = 'operations'
/** Operations in a batch, so that V8 takes thousands of samples. */
const BATCH = 1_000
/** For operations that allocate little and take no time, and for slow ones. */
const LARGE_BATCH = 15_000
const SMALL_BATCH = 300
const SIZES: { readonly [Id in OperationId]?: number } = {
  uuid: LARGE_BATCH,
  'recall-opaque': LARGE_BATCH,
  'recall-jwt': LARGE_BATCH,
  'issue-RS256': SMALL_BATCH,
  'issue-opaque-redis': SMALL_BATCH,
  'verify-opaque-redis': SMALL_BATCH,
}
/** Compiled and cached data is heap too, so part of a batch runs before the measurement. */
const WARM_UP_SHARE = 0.5

export type Allocations = Readonly<Record<OperationId, number>>

/**
 * Measures all operations once, in a separate process with an inspector. V8 samples allocations at
 * random, including garbage. The allocations of as many empty operations are subtracted. Buffers
 * outside the heap, such as those of WebCrypto, do not count.
 */
export async function measureAllocations(
  options: Omit<WorkerdOptions, 'names' | 'inspect'>,
): Promise<Allocations> {
  const workerd = await startWorkerd({ ...options, names: [SERVICE], inspect: true })
  try {
    const url = workerd.originOf(SERVICE)
    const run = (id: OperationId | typeof NOTHING, size: number) => timeBatch(url, id, size)
    await run(NOTHING, 1)
    const heap = await openHeap(workerd.inspector ?? '', SERVICE)
    const bytesOf = (id: OperationId | typeof NOTHING, size: number) =>
      heap.allocatedBytes(() => run(id, size))
    const found: Partial<Record<OperationId, number>> = {}
    for (const { id } of OPERATIONS) {
      const size = SIZES[id] ?? BATCH
      await run(id, Math.ceil(size * WARM_UP_SHARE))
      found[id] = bytesEach(await bytesOf(id, size), await bytesOf(NOTHING, size), size)
    }
    heap.close()
    return found as Allocations
  } finally {
    await workerd.close()
  }
}

/** Returns the bytes of one operation of a batch, without those of an empty batch. */
export function bytesEach(batch: number, empty: number, size: number): number {
  return rounded(Math.max(0, batch - empty) / size, 0)
}
