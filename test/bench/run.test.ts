import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { isStarvation } from '../../bench/measure/starvation.ts'
import { descendants } from '../../bench/processes/proc.ts'
import type { Measured, SuiteResult } from '../../bench/scenario.ts'
import { IS_LONG, testInLong } from '../harness/long.ts'

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'run.ts')
/** Enough for the start of two runtimes on a busy machine. */
const TIMEOUT_MS = 300_000
const results = mkdtempSync(join(tmpdir(), 'bench-test-'))
afterAll(() => rmSync(results, { recursive: true, force: true }))

/** One connection and one round, because the tests check correctness and not speed. */
const TINY = '--seconds 0.3 --warm-up 0.2 --rounds 1 --connections 1'.split(' ')

/** Reports whether a run failed because calls to Redis missed their deadlines. */
const isStarved = (error: unknown) =>
  [...String(error).matchAll(/^bench: (?:.*FAILED: )?(.*)$/gm)].some(([, why = '']) =>
    isStarvation(why),
  )
const ATTEMPTS = 3

async function bench(...args: readonly string[]): Promise<string> {
  const all = [...args, ...TINY, '--results', results]
  for (let attempt = 1; ; attempt++) {
    try {
      return (await promisify(execFile)(process.execPath, [RUN, ...all])).stdout
    } catch (error) {
      if (attempt === ATTEMPTS || !isStarved(error)) throw error
    }
  }
}

function resultOf(name: string): object {
  const file = readdirSync(results).find((candidate) => candidate.endsWith(`-${name}.json`)) ?? ''
  return JSON.parse(readFileSync(join(results, file), 'utf8')) as object
}

/** Returns the only scenario of a run. */
function measuredOf(name: string): Measured {
  const { measured, failed } = resultOf(name) as SuiteResult
  expect(failed).toEqual([])
  expect(measured).toHaveLength(1)
  return measured[0] as Measured
}

describe('a run', { timeout: TIMEOUT_MS }, () => {
  // In each run, node.test.ts starts and measures each of these gateways, and proves the figures.
  test.runIf(IS_LONG)(
    'has the figures of every gateway on Node, when each event is stored',
    async () => {
      const stdout = await bench('--only', 'node', '--quick')
      expect(stdout).toMatch(/^Portcullis, durable +\d+/m)
      const { figures, checks } = measuredOf('node')
      const ids = figures.map(({ id }) => id)
      expect(ids).toEqual(
        expect.arrayContaining(['durable-to-bare', 'log-to-bare', 'written', 'stored']),
      )
      expect(new Set(ids).size, 'ids of figures are unique').toBe(ids.length)
      expect(checks.length).toBeGreaterThan(0)
    },
  )

  testInLong(
    'has the figures of the pipeline on workerd, which makes one call to Redis',
    async () => {
      const stdout = await bench('--only', 'leases')
      expect(stdout).toContain('(workerd, ')
      const { figures, details } = measuredOf('leases')
      const { summaries } = details as { summaries: { id: string; redisCalls: number }[] }
      const callsOf = (name: string) => summaries.find(({ id }) => id === name)?.redisCalls
      expect(callsOf('gateway')).toBeGreaterThan(0.9)
      expect(callsOf('leased')).toBeLessThan(0.5)
      expect(callsOf('refused-forged-token')).toBe(0)
      expect(figures.map(({ id }) => id)).toContain('refused-forged-token-cpu')
    },
  )

  testInLong('has the growth of the chosen tables, up to the chosen size', async () => {
    await bench('--only', 'growth', '--quick', '--tables', 'routes,streams', '--most', '100')
    const { tables = [], notes = [] } = measuredOf('growth')
    expect(tables.map(({ rows }) => rows.map(([size]) => size))).toEqual([
      ['10', '100'],
      ['10', '100'],
    ])
    expect(notes.join()).toContain('Not measured: 2,000 routes of the policy: --most is 100.')
  })

  testInLong('a profile has the folders and packages of the gateway', async () => {
    await bench('--profile')
    const { owners } = resultOf('profile-node') as { owners: { owner: string }[] }
    for (const name of ['src/middleware', 'undici', 'Node'])
      expect(owners.map(({ owner }) => owner)).toContain(name)
    const name = readdirSync(results).find((file) => file.endsWith('-profile-node.cpuprofile'))
    const samples = JSON.parse(readFileSync(join(results, name ?? ''), 'utf8'))
    expect(samples.timeDeltas.length).toBe(samples.samples.length)
    expect(samples.endTime).toBeGreaterThan(samples.startTime)
  })

  test('an interrupted run exits with 1 and leaves no process behind', async () => {
    const child = spawn(process.execPath, [RUN, '--only', 'leases', '--results', results], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let output = ''
    for await (const chunk of child.stderr) {
      output += chunk
      if (output.includes('warming up')) break
    }
    const started = descendants(child.pid as number)
    expect(started.length, 'the origin, Redis and workerd').toBeGreaterThanOrEqual(3)
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([1, null])
    expect(started.filter(isRunning)).toEqual([])
  })
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
