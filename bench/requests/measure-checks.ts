/** Times permission checks from outside: a Worker's clock does not advance during computation. */
import { cpuBetween, cpuTimesOf } from '../process-times.ts'
import { rounded } from '../statistics.ts'
import {
  type ChecksAnswer,
  checksPath,
  NO_CHECK,
  PERMISSION_CHECKS,
  type PermissionCheck,
} from './permission-checks.ts'

const FIRST_BATCH = 20_000
const MAX_BATCH = 1_000_000_000
const NANOS_PER_MICRO = 1_000
const MICROS_PER_MS = 1_000

export interface MeasuredCheck extends PermissionCheck {
  /** CPU time of one check in nanoseconds, without the empty loop and its HTTP request. */
  readonly nanos: number
}

export interface ChecksMeasurement {
  readonly url: string
  /** The workerd process. */
  readonly pid: number
  readonly batchMs: number
  readonly batches: number
}

/**
 * Times `batches` batches of about `batchMs` milliseconds for each check. It measures the CPU time
 * of the process: on a busy machine it is more exact than the clock. Throws an `Error` of one line
 * for a wrong result.
 */
export async function measureChecks({
  url,
  pid,
  batchMs,
  batches,
}: ChecksMeasurement): Promise<readonly MeasuredCheck[]> {
  async function cpuMicros(id: string, size: number, isAllowed: boolean, times = batches) {
    const before = cpuTimesOf(pid)
    for (let batch = 0; batch < times; batch++) await repeat(url, id, size, isAllowed)
    const { userMicros, systemMicros } = cpuBetween(before, cpuTimesOf(pid))
    return userMicros + systemMicros
  }
  const measured: MeasuredCheck[] = []
  for (const check of PERMISSION_CHECKS) {
    let size = FIRST_BATCH
    const one = () => cpuMicros(check.id, size, check.allowed, 1)
    while ((await one()) < batchMs * MICROS_PER_MS && size < MAX_BATCH) size *= 2
    const empty = await cpuMicros(NO_CHECK, size, false)
    const micros = (await cpuMicros(check.id, size, check.allowed)) - empty
    measured.push({ ...check, nanos: nanosOf(check, micros / batches / size) })
  }
  return measured
}

function nanosOf({ title }: PermissionCheck, micros: number): number {
  if (micros > 0) return rounded(micros * NANOS_PER_MICRO, 1)
  throw new Error(`${title}: took no longer than nothing; the machine is too busy`)
}

/** Runs a batch in the Worker. */
async function repeat(url: string, id: string, size: number, isAllowed: boolean): Promise<void> {
  const response = await fetch(url + checksPath(id, size))
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${id}: answered with ${response.status}`)
  const { count, allowed } = JSON.parse(text) as ChecksAnswer
  if (count !== size || allowed !== (isAllowed ? size : 0))
    throw new Error(`${id}: ${allowed} of ${count} checks said yes`)
}
