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
const TIMEOUT_MS = 180_000
const results = mkdtempSync(join(tmpdir(), 'bench-test-'))
afterAll(() => rmSync(results, { recursive: true, force: true }))

/** One connection and one round: what is proven is that it works, not how fast. */
const TINY = '--seconds 0.5 --warm-up 0.5 --rounds 1 --connections 1'.split(' ')

async function bench(...args: readonly string[]) {
  const all = [...args, ...TINY, '--results', results]
  const { stdout } = await promisify(execFile)(process.execPath, [RUN, ...all])
  return stdout
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
      runtimes: { layers: { id: string; redisCalls: number; auditEvents: number }[] }[]
    }
    const layers = runtimes[0]?.layers ?? []
    const calls = Object.fromEntries(layers.map(({ id, redisCalls }) => [id, redisCalls]))
    for (const id of ['passthrough', 'hygiene', 'auth-cold', 'auth-cached']) {
      expect(calls[id], id).toBe(0)
    }
    // A request that is broken off at the end may have asked Redis and not the origin.
    for (const id of ['admit', 'authorize', 'validate', 'full']) {
      expect(calls[id], id).toBeGreaterThanOrEqual(1)
      expect(calls[id], id).toBeLessThan(1.1)
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
      else expect(redisCalls, id).toBeGreaterThanOrEqual(1)
      if (id.startsWith('pipeline') || id === 'issue-jwt') expect(redisCalls, id).toBeLessThan(1.1)
    }
    expect(peers).toEqual({ measured: [], skipped: [] })
  })

  test('a profile names our modules', async () => {
    await bench('--profile')
    const { modules } = resultOf('profile') as { modules: { module: string }[] }
    expect(modules.map(({ module }) => module)).toContain('src/routes/proxy.ts')
  })
})
