/** A short recorded run: the invariants that hold on any machine, and the command line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import type { HistoryEvent } from '../../../bench/chaos/history.ts'
import { check, violationsOf } from '../../../bench/record/check.ts'
import {
  CLUSTER_FAULT_NAMES,
  FAULT_NAMES,
  isOfCluster,
  planFaults,
} from '../../../bench/record/faults.ts'
import { readOptions } from '../../../bench/record/options.ts'
import { witnessed } from '../../../bench/record/recorder.ts'
import type { RecordResult } from '../../../bench/record/result.ts'
import { type LimitTerms, TERMS } from '../../../bench/record/terms.ts'
import { IS_LONG, testInLong } from '../../harness/long.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const RUN = join(import.meta.dirname, '../../../bench/record/run.ts')
/** A busy machine needs a minute. */
const TIMEOUT_MS = 180_000
const folder = mkdtempSync(join(tmpdir(), 'record-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function record(...args: readonly string[]) {
  const child = spawn(process.execPath, [RUN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, stdout, stderr }
}

describe('npm run record', { timeout: TIMEOUT_MS }, () => {
  testInLong(
    'four processes, with leases and without: no window above its limit, and no late admission after a revocation [R16]',
    async () => {
      const history = join(folder, 'history.gz')
      const { stdout, stderr, code } = await record(
        ...['--bursts', '4', '--seconds', '24', '--window', '4', '--faults', 'hang', '--seed', '7'],
        ...['--revocations', '25'],
        ...['--results', folder, '--history', history],
      )
      expect(stdout, stderr).toContain('worst window')
      const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('-record.json'))
      const result = JSON.parse(readFileSync(join(folder, file), 'utf8')) as RecordResult
      expect(result.violations, stdout).toEqual([])
      expect(result.revocations.total.late).toBe(0)
      expect(result.families.rotated).toBeGreaterThan(0)
      for (const [name, { limit, worstCertain, admitted }] of Object.entries(result.limits)) {
        expect(worstCertain, name).toBeLessThanOrEqual(limit)
        expect(admitted, name).toBeGreaterThan(0)
      }
      // On an overloaded machine, calls miss their deadlines. This is no violation.
      expect(code).toBe(result.unexplained === 0 ? 0 : 1)

      // The run contains enough events of each kind.
      const { total, byFault, byProcess } = result.revocations
      expect(total.revoked).toBeGreaterThan(0)
      expect(total.within).toBeGreaterThan(0)
      expect(byFault.hang?.revoked).toBeGreaterThan(0)
      for (const { judged } of byProcess) expect(judged).toBeGreaterThan(0)
      const answers = Object.values(result.availability)
      for (const kind of ['admitted', 'limited', 'revoked', 'unavailable'] as const)
        expect(
          answers.some((counts) => counts[kind] > 0),
          kind,
        ).toBe(true)
      for (const { requests, limit } of result.overload) expect(requests, limit).toBeGreaterThan(0)

      const events = gunzipSync(readFileSync(history))
        .toString()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as HistoryEvent)
      const verdict = check(events, TERMS)
      expect(violationsOf(verdict)).toEqual([])
      expect(verdict.requests).toBe(result.requests)

      // The checker finds violations that are added to this history.
      const admitted = events.find((event) => event.kind === 'request' && event.status === 200)
      const revoked = events.find((event) => event.kind === 'revoke' && event.status === 201)
      if (admitted?.kind !== 'request' || revoked?.kind !== 'revoke')
        throw new Error('missing events')
      const again = (count: number, more: object) =>
        Array.from({ length: count }, (_, index) => [
          { ...admitted, ...more, id: -1 - index },
          { kind: 'arrival', id: -1 - index, atMs: Number.POSITIVE_INFINITY } as const,
        ]).flat()
      const { limit } = TERMS.limits.strict as LimitTerms
      const atOnce = { route: 'strict', completeMs: admitted.invokeMs + 1 }
      const tooMany = check([...events, ...again(limit + 1, atOnce)], TERMS)
      expect(tooMany.windows.violations).toHaveLength(1)
      const lateMs = revoked.completeMs + TERMS.boundMs + 1
      const times = { invokeMs: lateMs, completeMs: lateMs + 1 }
      const late = check([...events, ...again(1, { ...times, token: revoked.token })], TERMS)
      expect(late.revocations.violations).toHaveLength(1)
    },
  )

  test.runIf(IS_LONG && hasRedisServer)(
    'on a cluster whose masters are killed, paused and cut off: no window above its limit, and no late admission after a revocation',
    async () => {
      const own = mkdtempSync(join(folder, 'cluster-'))
      const { stdout, stderr } = await record(
        ...['--cluster', '--bursts', '4', '--seconds', '60', '--window', '12'],
        ...['--faults', CLUSTER_FAULT_NAMES.filter(isOfCluster).join(), '--results', own],
      )
      const [file = ''] = readdirSync(own)
      expect(file, stderr).toMatch(/-record-cluster\.json$/)
      const result = JSON.parse(readFileSync(join(own, file), 'utf8')) as RecordResult
      expect(result.violations, stdout).toEqual([])
      expect(result.revocations.total.late).toBe(0)
      for (const name of CLUSTER_FAULT_NAMES.filter(isOfCluster)) {
        expect(result.availability[name]?.requests, name).toBeGreaterThan(0)
        expect(result.revocations.byFault[name]?.judged, name).toBeGreaterThan(0)
      }
    },
  )

  test('prints its options, and reports invalid ones', async () => {
    expect((await record('--help')).stdout).toContain('--revocations <n>')
    const mistake = await record('--faults', 'earthquake')
    expect(mistake).toMatchObject({ code: 2 })
    expect(mistake.stderr).toContain('--faults must be one of')
  })
})

describe('options', () => {
  test('defaults: a quarter of an hour, with every fault', () => {
    expect(readOptions([])).toEqual({
      cluster: false,
      seconds: 900,
      windowSeconds: 26,
      burstSeconds: 40,
      faults: FAULT_NAMES,
      revocations: 10,
      seed: 1,
      results: undefined,
      history: undefined,
    })
    expect(readOptions(['-h'])).toBe('help')
  })

  test('the faults are those of the system', () => {
    expect(readOptions(['--cluster'])).toMatchObject({ cluster: true, faults: CLUSTER_FAULT_NAMES })
    expect(() => readOptions(['--cluster', '--faults', 'redis-lost'])).toThrow('master-killed')
    expect(() => readOptions(['--faults', 'master-killed'])).toThrow('redis-lost')
  })

  test.each([
    ['--seconds', '0'],
    ['--window', 'x'],
    ['--seed', '-1'],
    ['--seed', '99999999999'],
    ['--results', ''],
    ['--history', ''],
    ['--unknown', '1'],
  ])('%s "%s" is refused', (...argv) => {
    expect(() => readOptions(argv)).toThrow()
  })
})

describe('the plan of faults', () => {
  const options = { seconds: 900, windowSeconds: 26, faults: FAULT_NAMES, seed: 4 }
  const plan = planFaults(options)

  test('each fault occurs before any occurs again, at one process or more, after a pause', () => {
    expect(plan).toHaveLength(34)
    // Two faults occur three times in each round.
    expect(new Set(plan.slice(0, FAULT_NAMES.length + 4).map(({ name }) => name)).size).toBe(
      FAULT_NAMES.length,
    )
    for (const [index, { processes, startSeconds, endSeconds }] of plan.entries()) {
      expect(processes.length).toBeGreaterThan(0)
      expect(new Set(processes).size).toBe(processes.length)
      expect(startSeconds).toBeGreaterThan(plan[index - 1]?.endSeconds ?? 0)
      expect(endSeconds).toBeGreaterThan(startSeconds)
    }
    expect(plan.some(({ processes }) => processes.length === TERMS.processes)).toBe(true)
  })

  test('the seed determines the plan', () => {
    expect(planFaults(options)).toEqual(plan)
    expect(planFaults({ ...options, seed: 5 })).not.toEqual(plan)
  })
})

describe('the witness of a run', () => {
  const broken = async () => {
    throw new Error('broken')
  }

  test('ends when the work is done, and when it fails', async () => {
    const signals: AbortSignal[] = []
    const watch = async (signal: AbortSignal) => void signals.push(signal)
    await witnessed(watch, async () => expect(signals[0]?.aborted).toBe(false))
    await expect(witnessed(watch, broken)).rejects.toThrow('broken')
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  })

  test('that fails during the work fails the run at once', async () => {
    await expect(witnessed(broken, () => new Promise(() => {}))).rejects.toThrow('broken')
  })
})
