/** The simulation of a fleet: its command, its report, and what it must find. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { FleetOptions } from '../../bench/simulate/experiment.ts'
import { runFleet } from '../../bench/simulate/fleet.ts'
import { readOptions, type SimulateOptions } from '../../bench/simulate/options.ts'
import { plotOf } from '../../bench/simulate/plot.ts'
import { pageOf } from '../../bench/simulate/report.ts'
import { createSchedule } from '../../bench/simulate/schedule.ts'
import { simulate, violationsOf } from '../../bench/simulate/simulate.ts'
import { byMaster } from '../../bench/simulate/size.ts'
import { KINDS } from '../../bench/simulate/traffic.ts'
import { fullest } from '../../bench/simulate/windows.ts'
import { IS_LONG } from '../harness/long.ts'
import { ROOT } from '../harness/process.ts'

const RUN = join(ROOT, 'bench', 'simulate', 'run.ts')

function command(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((done) => {
    execFile(process.execPath, [RUN, ...args], { cwd: ROOT }, (error, out, err) =>
      done({ code: error === null ? 0 : Number(error.code), out, err }),
    )
  })
}

function optionsOf(...argv: readonly string[]): SimulateOptions {
  const options = readOptions(argv)
  if (options === 'help') throw new Error('no options')
  return options
}

const SMALL: FleetOptions = {
  ...{ gateways: 3, processes: 2, rate: 600, sampleRate: 600, lanes: 4, masters: 3 },
  ...{ kinds: KINDS, seconds: 4, warmUpSeconds: 2, seed: 3, latencyMs: 0.25 },
  ...{ maxStalenessMs: 0, outage: undefined, revokes: true, lease: undefined },
  limits: [{ by: 'subject', limit: 200, windowSeconds: 2 }],
}

test.runIf(IS_LONG)(
  'the committed page about a fleet and its plot are what the command makes',
  async () => {
    const simulated = await simulate(optionsOf())
    expect(violationsOf(simulated)).toEqual([])
    const committed = (path: string) => readFileSync(join(ROOT, 'docs', path), 'utf8')
    expect(pageOf(simulated)).toBe(committed('fleet.md'))
    expect(plotOf(simulated)).toBe(committed('images/fleet.svg'))
  },
)

describe('a simulated fleet', () => {
  test('makes one command for each strict request that no cached refusal answers', async () => {
    const limits = [{ by: 'subject', limit: 100_000, windowSeconds: 2 }] as const
    const { commands, byKind } = await runFleet({ ...SMALL, limits, revokes: false })
    const requests = [...byKind.values()].reduce((sum, kind) => sum + kind.requests, 0)
    expect(requests).toBeGreaterThan(2_000)
    expect(Math.abs(commands.admissions - requests)).toBeLessThanOrEqual(2)
    expect(commands).toMatchObject({ renewals: 0, feedReads: 0, refunds: 0 })
  })

  test('makes a second command for a limit that the callers of a tenant share', async () => {
    const limits = [
      { by: 'subject', limit: 100_000, windowSeconds: 2 },
      { by: 'tenant', limit: 200_000, windowSeconds: 2 },
    ] as const
    const fleet = { ...SMALL, limits, revokes: false, lanes: 64, masters: 3 }
    const { commands, byKind } = await runFleet(fleet)
    const requests = [...byKind.values()].reduce((sum, kind) => sum + kind.requests, 0)
    expect(commands.admissions / requests).toBeGreaterThan(1.95)
    expect(commands.admissions / requests).toBeLessThanOrEqual(2.01)
  })

  test('admits no caller after its revocation returned if it is strict', async () => {
    const strict = await runFleet(SMALL)
    expect(strict.revocations).toBeGreaterThan(3)
    expect(strict.lateAdmissions).toBe(0)
  })

  test('admits revoked callers within the bound if it leases, with fewer commands', async () => {
    const strict = await runFleet(SMALL)
    const lease = { max: 20, ttlMs: 500 }
    const leased = await runFleet({ ...SMALL, maxStalenessMs: 400, lease })
    expect(leased.lateAdmissions).toBeGreaterThan(0)
    expect(leased.worstStalenessMs).toBeLessThanOrEqual(400)
    expect(leased.commands.admissions).toBeLessThan(strict.commands.admissions * 0.7)
    expect(leased.worstWindow).toBeLessThanOrEqual(1)
    expect(leased.spent).toBeLessThanOrEqual(leased.granted)
  })

  test('answers 503 for the lanes of lost masters until the failover, and exceeds no window', async () => {
    const outage = { atMs: 1_000, forMs: 2_000, failoverMs: 1_000 }
    const { seconds, worstWindow } = await runFleet({ ...SMALL, outage, revokes: false })
    expect(seconds.map(({ unavailable }) => unavailable > 0)).toEqual([false, true, false, false])
    expect(worstWindow).toBeLessThanOrEqual(1)
  })

  test('is the same for equal options', async () => {
    expect(await runFleet(SMALL)).toEqual(await runFleet(SMALL))
    expect((await runFleet({ ...SMALL, seed: 4 })).seconds).not.toEqual(
      (await runFleet(SMALL)).seconds,
    )
  })
})

test('work that waits for real time fails the run', async () => {
  const schedule = createSchedule(0)
  schedule.at(1, () => schedule.start(() => new Promise((resolve) => setTimeout(resolve, 50))))
  await expect(schedule.run(10)).rejects.toThrow('waits for something else than time')
})

test('the fullest period of a window includes requests on both sides of any boundary', () => {
  const timesMs = [0, 900, 950, 1_000, 1_100, 1_900]
  expect(fullest({ timesMs, limit: 4, windowSeconds: 1 })).toBe(1)
})

test('lanes are divided among masters as a cluster divides its slots', () => {
  const masters = byMaster(
    Array.from({ length: 64 }, () => 1),
    3,
  )
  expect(masters).toEqual([21, 22, 21])
})

describe('npm run simulate', () => {
  test('prints text or JSON', async () => {
    const small = ['--gateways', '3', '--rate', '300', '--seconds', '1', '--outage', '5']
    const few = ['--limits', 'subject:100/1', '--lease', '9/200', '--lanes', '4', ...small]
    const { code, out } = await command(...few)
    expect(code).toBe(0)
    expect(out).toContain('commands for a request')
    const json = JSON.parse((await command(...few, '--json')).out)
    expect(json.variants.map(({ id }: { id: string }) => id)).toEqual(['strict', 'leased'])
  })

  test.each([
    [['--limits', 'client:5/1'], /"client:5\/1" is not <by>:<units>\/<seconds>/],
    [['--limits', 'tenant:5/1'], /needs one limit by subject/],
    [['--lease', '5'], /must be <max>\/<milliseconds>/],
    [['--lease', '5/3000'], /at most a quarter of the shortest window, 2500/],
    [['--masters', '5', '--lanes', '4'], /--masters must be a number from 1 to 4/],
    [['--report', '--seed', '2'], /--report writes the committed report/],
  ] as const)('refuses %j', (argv, message) => {
    expect(() => readOptions(argv)).toThrow(message)
  })

  test('ends with 2 for invalid options', async () => {
    const { code, err } = await command('--gateways', '0')
    expect(code).toBe(2)
    expect(err).toContain('--gateways must be a number from 1 to 10000')
  })
})
