import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { descendants } from '../../bench/processes/proc.ts'
import type { SoakResult } from '../../bench/soak/result.ts'
import { ROOT } from '../../dev/start/settings.ts'
import { IS_LONG, usualOrLong } from '../harness/long.ts'
import { isInstalled } from '../harness/process.ts'

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'soak', 'run.ts')
/** Enough for the start of two gateways on a busy machine. */
const TIMEOUT_MS = 240_000
/** The faults below do not depend on timeouts, and Redis shares the machine with the load. */
const PATIENT = { REDIS_TIMEOUT_MS: '5000' }
/** The first window is quiet; each other window has a fault. */
const SHORT = usualOrLong(
  { minutes: 0.48, faults: ['redis-rubbish'] },
  { minutes: 0.95, faults: ['origin-refuse', 'redis-refuse', 'redis-rubbish'] },
)
/** Longer than this timeout. */
const STANDSTILL_MS = 10_000
const folder = mkdtempSync(join(tmpdir(), 'soak-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Starts a soak. */
function soak(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [RUN, ...args], { env: { ...process.env, ...env } })
  const output = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text
    })
  const ended = once(child, 'close').then(([code]): Ended => ({ code, ...output }))
  return { pid: child.pid ?? 0, ended, progress: () => output.stderr }
}

/** What the gateways of a soak logged, without the lines of decisions. */
const logs = () =>
  [1, 2]
    .map((index) => readFileSync(join(ROOT, '.wrangler', `soak-gateway-${index}.log`), 'utf8'))
    .flatMap((text) => text.split('\n').filter((line) => !/^[A-Z]+ +\/.* ms$/.test(line)))
    .join('\n')

/** Returns the name of a process. Its executable may be a link. */
const nameOf = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
/** The embedded Redis is no process that a test can pause. */

describe('npm run soak', { timeout: TIMEOUT_MS }, () => {
  test('a short soak with faults has no wrong accept and no lost audit event [R33]', async () => {
    const file = join(folder, 'short.json')
    const ended = await soak(
      [
        // The second half of each window is longer than the recovery of a breaker.
        ...['--minutes', String(SHORT.minutes), '--faults', SHORT.faults.join()],
        ...['--rate', '30', '--window', '14', '--seed', '2', '--out', file],
      ],
      PATIENT,
    ).ended
    expect(ended.stdout, ended.stderr).toContain('wrong accepts')
    const result = JSON.parse(readFileSync(file, 'utf8')) as SoakResult
    expect(
      result.invariants.filter(({ holds }) => holds === false),
      ended.stdout + logs(),
    ).toEqual([])
    expect(ended.code).toBe(0)

    expect(result.load.requests).toBeGreaterThan(300)
    expect(result.audit.matched).toBe(result.audit.answered)
    expect(result.faults.map(({ name }) => name).sort()).toEqual(SHORT.faults)
    for (const { name, troubles } of result.faults) expect(troubles, name).toBeGreaterThan(0)
    const kinds = Object.keys(result.answers)
    for (const kind of ['forged', 'beyond the limit']) expect(kinds).toContain(kind)
    expect(kinds.some((kind) => kind.startsWith('revoked by'))).toBe(true)
    expect(result.series.p99Ms.length).toBeGreaterThan(SHORT.minutes * 50)
  })

  // In each run, soak-parts.test.ts proves that such a response breaks the invariant.
  test.runIf(IS_LONG && isInstalled('redis-server'))(
    'a 503 without a fault breaks an invariant [R33]',
    async () => {
      const file = join(folder, 'unexplained.json')
      const options = ['--minutes', '0.3', '--rate', '20', '--window', '60', '--out', file]
      const running = soak(options, PATIENT)
      // Pauses Redis under load, without a planned fault.
      await expect.poll(() => running.progress(), { timeout: TIMEOUT_MS }).toContain('offering')
      const redis = descendants(running.pid).filter((pid) => nameOf(pid) === 'redis-server')
      expect(redis).toHaveLength(1)
      for (const pid of redis) process.kill(pid, 'SIGSTOP')
      await sleep(STANDSTILL_MS)
      for (const pid of redis) process.kill(pid, 'SIGCONT')

      const ended = await running.ended
      expect(ended.code, ended.stderr).toBe(1)
      const { invariants } = JSON.parse(readFileSync(file, 'utf8')) as SoakResult
      const [unexplained] = invariants.filter(({ what }) => what.startsWith('unexplained'))
      expect(unexplained?.holds, ended.stdout).toBe(false)
      expect(unexplained?.examples.join()).toContain('503 dependency_unavailable')
      expect(ended.stdout).toContain('BROKEN')
    },
  )

  test('prints its options, and reports invalid ones', async () => {
    const help = await soak(['--help']).ended
    expect(help.stdout).toContain('--minutes <n>')
    const mistake = await soak(['--minutes', 'ten']).ended
    expect(mistake.code).toBe(2)
    expect(mistake.stderr).toContain('--minutes must be a number')
  })
})
