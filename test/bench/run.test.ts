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
import type { ProfileNode } from '../../bench/stack/inspector.ts'
import { CASE_IDS } from '../../bench/tokens/cases.ts'
import { OPERATIONS } from '../../bench/tokens/operations.ts'

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

/** Maximum share and number of calls of requests that were aborted at the end. */
const STRAY_SHARE = 0.1
const STRAYS = 4

/** Allows a few additional calls, but not a second call for each request. */
function expectOneCallEach(of: { id: string; requests: number; redisCalls: number }): void {
  const strays = Math.abs(of.redisCalls - 1) * of.requests
  expect(strays, of.id).toBeLessThan(Math.max(of.requests * STRAY_SHARE, STRAYS))
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
  test('every layer responds correctly, and the full pipeline makes one call to Redis', async () => {
    const stdout = await bench('--only', 'layers', '--quick')
    expect(stdout).toMatch(/^full +\d+/m)
    const { figures, details } = measuredOf('layers')
    const { closed, paced, refused } = details as {
      closed: { id: string; requests: number; redisCalls: number; auditEvents: number }[]
      refused: { id: string; requests: number; redisCalls: number; isLocal: boolean }[]
      paced: { id: string; rounds: { requests: number; p50Ms: number }[] }[]
    }
    const WITHOUT_REDIS = ['passthrough', 'hygiene', 'auth-cold', 'auth-cached']
    const WITH_REDIS = ['admit', 'authorize', 'validate', 'audit', 'full']
    expect(closed.map(({ id }) => id)).toEqual([...WITHOUT_REDIS, ...WITH_REDIS])
    for (const layer of closed) {
      if (WITH_REDIS.includes(layer.id)) expectOneCallEach(layer)
      else expect(layer.redisCalls, layer.id).toBe(0)
    }
    const eventsOf = (id: string) => closed.find((layer) => layer.id === id)?.auditEvents
    // If the queue is slow, some events go to Redis instead.
    expect(eventsOf('full')).toBeGreaterThan(0)
    expect(eventsOf('audit')).toBeGreaterThan(0)
    expect(eventsOf('validate')).toBe(0)
    expect(paced.map(({ id }) => id)).toEqual(closed.map(({ id }) => id))
    for (const { id, rounds } of paced) expect(rounds[0]?.requests, id).toBeGreaterThan(0)
    expect(refused).toHaveLength(5)
    for (const refusal of refused) {
      if (refusal.isLocal) expect(refusal.redisCalls, refusal.id).toBe(0)
      else expectOneCallEach(refusal)
    }
    const ids = figures.map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(['full-cpu-ratio', 'full-added-p50', 'audit-cpu']))
    expect(new Set(ids).size, 'ids of figures are unique').toBe(ids.length)
  })

  test('every layer responds correctly under wrangler dev, with a request body', async () => {
    const scenario = ['--only', 'layers', '--runtime', 'wrangler', '--layers', 'full']
    const stdout = await bench(...scenario, '--request', 'write')
    expect(stdout).toContain('(wrangler, ')
    expect(measuredOf('layers-wrangler')).toMatchObject({
      runtime: 'wrangler',
      details: {
        options: { request: 'write' },
        closed: [{ id: 'passthrough' }, { id: 'full' }],
      },
    })
  })

  test('tokens are issued and validated correctly, and the pipeline makes one call for each kind', async () => {
    const stdout = await bench('--only', 'tokens', '--quick')
    expect(stdout).toContain('Identity V2 (Go): signing RS256')
    const { operations, http, native } = measuredOf('tokens').details as {
      operations: { id: string; operations: number }[]
      http: { id: string; requests: number; redisCalls: number }[]
      native: Readonly<Record<string, number>>
    }
    expect(operations.map(({ id }) => id)).toEqual(OPERATIONS.map(({ id }) => id))
    expect(http.map(({ id }) => id)).toEqual(CASE_IDS)
    for (const { id, operations: count } of operations) expect(count, id).toBeGreaterThan(0)
    for (const { id, requests, redisCalls } of http) {
      expect(requests, id).toBeGreaterThan(0)
      if (id.startsWith('validate')) expect(redisCalls, id).toBe(0)
      else if (id === 'issue-opaque') expect(redisCalls, id).toBeGreaterThan(1.5)
      else expectOneCallEach({ id, requests, redisCalls })
    }
    expect(native['verify-RS256']).toBeGreaterThan(0)
  })

  test('a profile contains the stages and functions of the gateway', async () => {
    await bench('--profile')
    const { stages } = resultOf('profile') as {
      stages: { stage: string; share: number }[]
    }
    for (const name of ['audit', 'admit', 'proxy'])
      expect(stages.find(({ stage }) => stage === name)?.share, name).toBeGreaterThan(0)
    const file = readdirSync(results).find((name) => name.endsWith('-profile.cpuprofile')) ?? ''
    const { nodes, samples, timeDeltas, startTime, endTime } = JSON.parse(
      readFileSync(join(results, file), 'utf8'),
    )
    expect(samples.length).toBeGreaterThan(0)
    expect(timeDeltas.length).toBe(samples.length)
    expect(endTime).toBeGreaterThan(startTime)
    expect(nodes.map((node: ProfileNode) => node.callFrame.functionName)).toContain('admit')
  })

  test('an interrupted run exits with 1 and leaves no process behind', async () => {
    const child = spawn(process.execPath, [RUN, '--only', 'layers', '--results', results], {
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
