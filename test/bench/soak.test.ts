import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import type { SoakResult } from '../../bench/soak/result.ts'

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'soak', 'run.ts')
/** A busy machine takes its time to start two gateways. */
const TIMEOUT_MS = 240_000
const folder = mkdtempSync(join(tmpdir(), 'soak-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = promisify(execFile)

interface Ended {
  readonly code?: number
  readonly stdout: string
  readonly stderr: string
}

async function soak(...args: readonly string[]): Promise<Ended> {
  try {
    return await run(process.execPath, [RUN, ...args])
  } catch (error) {
    return error as Ended
  }
}

describe('npm run soak', { timeout: TIMEOUT_MS }, () => {
  test('R33: a short one with three faults: nothing wrong passes, nothing is lost', async () => {
    const file = join(folder, 'short.json')
    const ended = await soak(
      ...['--minutes', '0.4', '--rate', '30', '--window', '6', '--seed', '2', '--out', file],
      ...['--faults', 'redis-rubbish,redis-refuse,origin-refuse'],
    )
    expect(ended.stdout, ended.stderr).toContain('wrong accepts')
    const result = JSON.parse(readFileSync(file, 'utf8')) as SoakResult
    const broken = result.invariants.filter(({ holds }) => holds === false)
    // On a starved machine a call to Redis may miss its deadline when nothing is wrong with it.
    const starved = broken.filter(
      ({ what, examples }) =>
        what.startsWith('unexplained') && examples.every((text) => / 503 \w+ \(/.test(text)),
    )
    expect(broken, ended.stdout).toEqual(starved)
    expect(ended.code ?? 0).toBe(broken.length === 0 ? 0 : 1)

    expect(result.load.requests).toBeGreaterThan(300)
    expect(result.audit.matched).toBe(result.audit.answered)
    expect(result.faults.map(({ name }) => name).sort()).toEqual([
      'origin-refuse',
      'redis-refuse',
      'redis-rubbish',
    ])
    for (const { name, troubles } of result.faults) expect(troubles, name).toBeGreaterThan(0)
    const kinds = Object.keys(result.answers)
    for (const kind of ['refresh', 'logout', 'call after logout', 'forged', 'beyond the limit'])
      expect(kinds).toContain(kind)
    expect(kinds.some((kind) => kind.startsWith('revoked by'))).toBe(true)
    expect(readFileSync(file.replace('.json', '.svg'), 'utf8')).toContain('redis-rubbish')
  })

  test('says what it takes, and what makes no run', async () => {
    const help = await soak('--help')
    expect(help.stdout).toContain('--minutes <n>')
    const mistake = await soak('--minutes', 'ten')
    expect(mistake.code).toBe(2)
    expect(mistake.stderr).toContain('--minutes must be a number')
  })
})
