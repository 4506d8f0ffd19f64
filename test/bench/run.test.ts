import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { CASE_IDS } from '../../bench/token-costs/cases.ts'
import { OPERATION_IDS } from '../../bench/token-costs/operations.ts'

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'run.ts')
/** A busy machine takes its time to start two runtimes. */
const TIMEOUT_MS = 300_000
const results = mkdtempSync(join(tmpdir(), 'bench-test-'))
afterAll(() => rmSync(results, { recursive: true, force: true }))

/** One connection and one round: what is proven is that it works, not how fast. */
const TINY = '--seconds 0.5 --warm-up 0.5 --rounds 1 --connections 1'.split(' ')

/** On a starved machine a call to Redis may miss its deadline: then nothing was measured. */
const STARVED = /wrong answers from \S+: \d+ with status 503$/m
const ATTEMPTS = 3

async function bench(...args: readonly string[]): Promise<string> {
  const all = [...args, ...TINY, '--results', results]
  for (let attempt = 1; ; attempt++) {
    try {
      return (await promisify(execFile)(process.execPath, [RUN, ...all])).stdout
    } catch (error) {
      if (attempt === ATTEMPTS || !STARVED.test(String(error))) throw error
    }
  }
}

/** Share of calls, and how many, that may be those of requests that were broken off at the end. */
const STRAY_SHARE = 0.1
const STRAYS = 4

/** A few calls are strays, however few requests a slow machine answers; a second call each is not. */
function expectOneCallEach(of: { id: string; requests: number; redisCalls: number }): void {
  const strays = Math.abs(of.redisCalls - 1) * of.requests
  expect(strays, of.id).toBeLessThan(Math.max(of.requests * STRAY_SHARE, STRAYS))
}

function resultOf(name: string): Record<string, unknown> {
  const file = readdirSync(results).find((candidate) => candidate.endsWith(`-${name}.json`)) ?? ''
  return JSON.parse(readFileSync(join(results, file), 'utf8')) as Record<string, unknown>
}

describe('a run', { timeout: TIMEOUT_MS }, () => {
  test('every layer answers right, and the full pipeline costs one call to Redis', async () => {
    const stdout = await bench('--layers', '--runtime', 'workerd')
    expect(stdout).toMatch(/^full +\d+/m)
    const { runtimes } = resultOf('layers') as {
      runtimes: {
        layers: { id: string; requests: number; redisCalls: number; auditEvents: number }[]
      }[]
    }
    const layers = runtimes[0]?.layers ?? []
    const WITHOUT_REDIS = ['passthrough', 'hygiene', 'auth-cold', 'auth-cached']
    const WITH_REDIS = ['admit', 'authorize', 'validate', 'full']
    expect(layers.map(({ id }) => id)).toEqual([...WITHOUT_REDIS, ...WITH_REDIS])
    for (const layer of layers) {
      if (WITH_REDIS.includes(layer.id)) expectOneCallEach(layer)
      else expect(layer.redisCalls, layer.id).toBe(0)
    }
    expect(layers.find(({ id }) => id === 'full')?.auditEvents).toBeGreaterThan(0.9)
    expect(layers.find(({ id }) => id === 'validate')?.auditEvents).toBe(0)
  })

  test('the same under wrangler dev, with a body to write', async () => {
    const stdout = await bench('--only', 'full', '--runtime', 'wrangler', '--request', 'write')
    expect(stdout).toContain('wrangler dev')
    expect(resultOf('layers')).toMatchObject({
      options: { request: 'write' },
      runtimes: [{ runtime: 'wrangler', layers: [{ id: 'passthrough' }, { id: 'full' }] }],
    })
  })

  test('tokens are issued and validated right, and the pipeline costs one call for each kind', async () => {
    const stdout = await bench('--tokens', '--no-peers')
    expect(stdout).toContain('on other hardware')
    const { operations, http, peers } = resultOf('tokens') as {
      operations: { id: string; operations: number }[]
      http: { id: string; requests: number; redisCalls: number }[]
      peers: object
    }
    expect(operations.map(({ id }) => id)).toEqual(OPERATION_IDS)
    expect(http.map(({ id }) => id)).toEqual(CASE_IDS)
    for (const { id, operations: count } of operations) expect(count, id).toBeGreaterThan(0)
    for (const { id, requests, redisCalls } of http) {
      expect(requests, id).toBeGreaterThan(0)
      if (id.startsWith('validate')) expect(redisCalls, id).toBe(0)
      else if (id === 'issue-opaque') expect(redisCalls, id).toBeGreaterThan(1.5)
      else expectOneCallEach({ id, requests, redisCalls })
    }
    expect(peers).toEqual({ measured: [], skipped: [] })
  })

  test('a profile names our modules', async () => {
    await bench('--profile')
    const { modules } = resultOf('profile') as { modules: { module: string }[] }
    expect(modules.map(({ module }) => module)).toContain('src/routes/proxy.ts')
  })
})
