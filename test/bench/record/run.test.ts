/** A short recorded run, for what must hold of it whatever the machine is at; and its command line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { check, violationsOf } from '../../../bench/record/check.ts'
import { FAULT_NAMES, planFaults } from '../../../bench/record/faults.ts'
import type { HistoryEvent } from '../../../bench/record/history.ts'
import { readOptions } from '../../../bench/record/options.ts'
import type { RecordResult } from '../../../bench/record/result.ts'
import { TERMS } from '../../../bench/record/terms.ts'

const RUN = join(import.meta.dirname, '../../../bench/record/run.ts')
/** It takes 20 s where nothing else runs. */
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
  test('R16: four processes, with leases and without: no window above its limit, and nobody late after a revocation', async () => {
    const history = join(folder, 'history.gz')
    const { stdout, stderr, code } = await record(
      ...['--bursts', '8', '--seconds', '8', '--window', '4', '--faults', 'hang', '--seed', '7'],
      ...['--results', folder, '--history', history],
    )
    expect(stdout, stderr).toContain('worst window')
    const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('-record.json'))
    const result = JSON.parse(readFileSync(join(folder, file), 'utf8')) as RecordResult
    expect(result.violations, stdout).toEqual([])
    expect(result.revocations.total.late).toBe(0)
    for (const [name, { limit, worstCertain, admitted }] of Object.entries(result.limits)) {
      expect(worstCertain, name).toBeLessThanOrEqual(limit)
      expect(admitted, name).toBeGreaterThan(0)
    }
    // On a starved machine a call misses its deadline when nothing is wrong; that is no violation.
    expect(code).toBe(result.unexplained === 0 ? 0 : 1)

    // All of that is about something.
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
    const offered = result.windows.length + Object.keys(result.limits).length
    expect(offered).toBeGreaterThan(0)

    const lines = gunzipSync(readFileSync(history)).toString().trimEnd().split('\n')
    const events = lines.map((line) => JSON.parse(line) as HistoryEvent)
    const verdict = check(events, TERMS)
    expect(violationsOf(verdict)).toEqual([])
    expect(verdict.requests).toBe(result.requests)
    // One more of who has spent a whole limit is found.
    const worst = verdict.windows.findings.find(({ certain }) => certain === 100)
    expect(worst).toBeDefined()
  })

  test('says what it takes, and what makes no run', async () => {
    expect((await record('--help')).stdout).toContain('--revocations <n>')
    const mistake = await record('--faults', 'earthquake')
    expect(mistake).toMatchObject({ code: 2 })
    expect(mistake.stderr).toContain('--faults must be one of')
  })
})

describe('what is asked for', () => {
  test('a quarter of an hour, with every fault', () => {
    expect(readOptions([])).toEqual({
      ...{ seconds: 900, windowSeconds: 26, burstSeconds: 40, faults: FAULT_NAMES },
      ...{ revocations: 10, seed: 1, results: undefined, history: undefined },
    })
    expect(readOptions(['-h'])).toBe('help')
  })

  test.each([
    ['--seconds', '0'],
    ['--window', 'x'],
    ['--seed', '-1'],
    ['--seed', '99999999999'],
    ['--results', ''],
    ['--history', ''],
    ['--unknown', '1'],
  ])('%s "%s" makes no run', (...argv) => {
    expect(() => readOptions(argv)).toThrow()
  })
})

describe('the plan', () => {
  const options = { seconds: 900, windowSeconds: 26, faults: FAULT_NAMES, seed: 4 }
  const plan = planFaults(options)

  test('each fault comes before any comes again, at one process or more, and with a rest before it', () => {
    expect(plan).toHaveLength(34)
    // Two come three times in a round.
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

  test('the same seed is the same plan, another one is another', () => {
    expect(planFaults(options)).toEqual(plan)
    expect(planFaults({ ...options, seed: 5 })).not.toEqual(plan)
  })
})
