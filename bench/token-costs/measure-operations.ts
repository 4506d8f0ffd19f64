/** Times operations from outside: a Worker's clock stands still while it computes. */
import { type CpuTimes, cpuBetween, cpuTimesOf } from '../process-times.ts'
import { median, ratio, rounded } from '../statistics.ts'
import type { Workerd } from '../workerd.ts'
import {
  type BatchAnswer,
  batchPath,
  NOTHING,
  OPERATIONS,
  type Operation,
  type OperationId,
} from './operations.ts'

/** Of a batch: its HTTP request, some half millisecond, is subtracted and hardly shows. */
const BATCH_MS = 50
const MAX_BATCH = 1_048_576
const EMPTY_BATCHES = 3
const MAX_ENLARGEMENT = 64
const DIGITS = 3

/** One measurement of one operation. */
export interface OperationRound {
  readonly operations: number
  /** Of one, by the clock; an empty batch is subtracted. */
  readonly micros: number
  /** Of one: the workerd process with all its threads, and the operation's share of the batch. */
  readonly cpuMicros: number
  /** As many as one isolate does, one after the other. */
  readonly perSecond: number
}

export interface OperationFigures extends OperationRound {
  readonly id: OperationId
  readonly title: string
  readonly rounds: readonly OperationRound[]
}

export interface OperationsMeasurement {
  readonly workerd: Workerd
  readonly seconds: number
  readonly rounds: number
  readonly onProgress: (what: string) => void
}

/** Medians of the rounds; in each round all operations run in turn. */
export async function measureOperations(
  measurement: OperationsMeasurement,
): Promise<OperationFigures[]> {
  const { workerd, seconds, rounds, onProgress } = measurement
  const url = workerd.originOf('operations')
  const sizes = new Map<Operation, number>()
  for (const operation of OPERATIONS) {
    onProgress(`warming up: ${operation.title}`)
    sizes.set(operation, await warmUp(url, operation.id, seconds))
  }
  const done = new Map<Operation, OperationRound[]>(OPERATIONS.map((of) => [of, []]))
  for (let round = 1; round <= rounds; round++) {
    onProgress(`round ${round} of ${rounds}: operations`)
    for (const [operation, size] of sizes) {
      const raw = await measureAboveNoise(workerd, { id: operation.id, size, seconds })
      done.get(operation)?.push(roundOf(raw))
    }
  }
  return [...done].map(([{ id, title }, each]) => ({ id, title, ...mediansOf(each), rounds: each }))
}

/** What was read of one measurement. */
export interface RawRound {
  readonly size: number
  readonly batches: number
  readonly batchMicros: number
  readonly emptyMicros: number
  readonly cpu: CpuTimes
}

/** From batches to one operation. */
export function roundOf({
  size,
  batches,
  batchMicros,
  emptyMicros,
  cpu,
}: RawRound): OperationRound {
  const operations = size * batches
  const each = (micros: number) => rounded(Math.max(0, micros) / operations, DIGITS)
  const micros = each(batchMicros - batches * emptyMicros)
  const cpuMicros = each(cpu.userMicros + cpu.systemMicros)
  return { operations, micros, cpuMicros, perSecond: perSecondOf(micros) }
}

/** How many there are in a second; throws a `RangeError` for what takes no time. */
export function perSecondOf(micros: number): number {
  return rounded(ratio(1_000_000, micros), 0)
}

function mediansOf(rounds: readonly OperationRound[]): OperationRound {
  const micros = rounded(median(rounds.map((round) => round.micros)), DIGITS)
  return {
    operations: rounds.reduce((sum, round) => sum + round.operations, 0),
    micros,
    cpuMicros: rounded(median(rounds.map((round) => round.cpuMicros)), DIGITS),
    perSecond: perSecondOf(micros),
  }
}

/** Returns how many operations fill a batch, once V8 has compiled them. */
async function warmUp(url: string, id: OperationId, seconds: number): Promise<number> {
  let size = 1
  for (;;) {
    const ms = (await timeBatch(url, id, size)) / 1000
    if (ms >= Math.min(BATCH_MS, seconds * 1000) || size === MAX_BATCH) return size
    size *= 2
  }
}

/**
 * On a machine that is busy with something else a batch may take no longer than an empty one: then
 * twice as many are measured, and what is still lost is left to `roundOf` to refuse.
 */
async function measureAboveNoise(
  workerd: Workerd,
  { id, size, seconds }: { id: OperationId; size: number; seconds: number },
): Promise<RawRound> {
  for (let larger = size; ; larger *= 2) {
    const raw = await measureOnce(workerd, { id, size: larger, seconds })
    const isHeard = raw.batchMicros > raw.batches * raw.emptyMicros
    if (isHeard || larger >= size * MAX_ENLARGEMENT) return raw
  }
}

async function measureOnce(
  { originOf, pid }: Workerd,
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
  // Whatever is longer than the shortest has waited for something else.
  return { size, batches, batchMicros, emptyMicros: Math.min(...empty), cpu }
}

/** Microseconds of a batch, by the clock. Throws unless it did all that it was asked. */
async function timeBatch(url: string, id: OperationId | typeof NOTHING, size: number) {
  const started = performance.now()
  const response = await fetch(url + batchPath(id, size))
  const text = await response.text()
  const micros = (performance.now() - started) * 1000
  if (response.status !== 200) throw new Error(`${id}: answered with ${response.status}`)
  const { count, last } = JSON.parse(text) as BatchAnswer
  if (count !== size || last === undefined) throw new Error(`${id}: did not do what was asked`)
  return micros
}
