/** Times permission checks from outside: a Worker's clock stands still while it computes. */
import { median, rounded } from '../statistics.ts'
import {
  type ChecksAnswer,
  checksPath,
  NO_CHECK,
  PERMISSION_CHECKS,
  type PermissionCheck,
} from './permission-checks.ts'

const FIRST_BATCH = 20_000
const MAX_BATCH = 1_000_000_000
const NANOS_PER_MS = 1_000_000

export interface MeasuredCheck extends PermissionCheck {
  /** Of one, by the clock, nanoseconds; the empty loop and its HTTP request are subtracted. */
  readonly nanos: number
}

/**
 * Medians of so many batches of about `batchMs` milliseconds each. Throws an `Error` of one line for
 * a check that says something else than it has to.
 */
export async function measureChecks(
  url: string,
  { batchMs, batches }: { readonly batchMs: number; readonly batches: number },
): Promise<readonly MeasuredCheck[]> {
  const measured: MeasuredCheck[] = []
  for (const check of PERMISSION_CHECKS) {
    const time = (count: number) => timeBatch(url, check.id, count, check.allowed)
    let size = FIRST_BATCH
    while ((await time(size)) < batchMs && size < MAX_BATCH) size *= 2
    const [empty, full]: [number[], number[]] = [[], []]
    for (let batch = 0; batch < batches; batch++) {
      empty.push(await timeBatch(url, NO_CHECK, size, false))
      full.push(await time(size))
    }
    // Whatever is longer than the shortest empty one has waited for something else.
    const nanos = ((median(full) - Math.min(...empty)) * NANOS_PER_MS) / size
    measured.push({ ...check, nanos: refuseNothing(check, nanos) })
  }
  return measured
}

function refuseNothing({ title }: PermissionCheck, nanos: number): number {
  if (nanos > 0) return rounded(nanos, 1)
  throw new Error(`${title}: took no longer than nothing; the machine is too busy`)
}

/** Milliseconds of a batch. */
async function timeBatch(url: string, id: string, size: number, isAllowed: boolean) {
  const started = performance.now()
  const response = await fetch(url + checksPath(id, size))
  const text = await response.text()
  const ms = performance.now() - started
  if (response.status !== 200) throw new Error(`${id}: answered with ${response.status}`)
  const { count, allowed } = JSON.parse(text) as ChecksAnswer
  if (count !== size || allowed !== (isAllowed ? size : 0))
    throw new Error(`${id}: ${allowed} of ${count} checks said yes`)
  return ms
}
