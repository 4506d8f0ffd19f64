import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { aimMet, valueText } from '../../bench/report/format.ts'
import type { Figure, Scenario, ScenarioContext, ScenarioResult } from '../../bench/scenario.ts'
import { SCENARIOS } from '../../bench/scenarios/index.ts'
import { jobsOf, runSuite } from '../../bench/suite.ts'
import { listOf, measuredText } from '../../bench/text.ts'

const FOLDER = join(import.meta.dirname, '..', '..', 'bench', 'scenarios')
const directory = mkdtempSync(join(tmpdir(), 'suite-test-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe('the registry', () => {
  test('has every scenario of the folder, under the name of its file', () => {
    const files = readdirSync(FOLDER, { withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'index.ts')
      .map(({ name }) => basename(name, '.ts'))
    expect(SCENARIOS.map(({ id }) => id).toSorted()).toEqual(files.toSorted())
  })

  test('every scenario states its runtimes and its duration', () => {
    for (const { id, seconds, runtimes } of SCENARIOS) {
      expect(runtimes, id).not.toEqual([])
      expect(seconds.quick, id).toBeLessThanOrEqual(seconds.full)
    }
  })

  test('the stated durations fit a quick run of 3 minutes and a full run of 45', () => {
    const sum = (of: (scenario: Scenario) => number) =>
      SCENARIOS.reduce((total, scenario) => total + of(scenario), 0)
    expect(sum(({ seconds }) => seconds.quick)).toBeLessThanOrEqual(3 * 60)
    const full = sum(({ seconds, runtimes }) => seconds.full * runtimes.length)
    expect(full).toBeLessThanOrEqual(45 * 60)
  })

  test('a scenario that is too long for a quick run runs if it is selected', () => {
    const [one] = SCENARIOS
    if (one === undefined) throw new Error('missing scenario')
    const long = { ...one, id: 'long', seconds: { quick: 0, full: 60 } }
    const idsOf = (effort: 'quick' | 'full', only?: readonly string[]) =>
      jobsOf([one, long], { only, runtime: undefined, effort }).map(({ scenario }) => scenario.id)
    expect(new Set(idsOf('quick'))).toEqual(new Set([one.id]))
    expect(new Set(idsOf('full'))).toEqual(new Set([one.id, 'long']))
    expect(idsOf('quick', ['long'])).toContain('long')
  })

  test('--list prints title and description', () => {
    const text = listOf(SCENARIOS)
    for (const { id, title, measures } of SCENARIOS) {
      expect(text).toContain(`${id}: ${title}`)
      expect(text).toContain(measures)
    }
  })
})

const DETAIL = { request: 'read', durable: false, rounds: 3 } as const
const RESULT: ScenarioResult = { figures: [], checks: [] }

function scenarioOf(
  id: string,
  run: Scenario['run'] = async () => RESULT,
  runtimes: Scenario['runtimes'] = ['workerd'],
): Scenario {
  const seconds = { quick: 1, full: 2 }
  return {
    id,
    title: `Of ${id}`,
    measures: '',
    runtimes,
    seconds,
    run,
  }
}

describe('selection of scenarios', () => {
  const known = [scenarioOf('both', undefined, ['workerd', 'node']), scenarioOf('one')]
  const idsOf = (options: Partial<Parameters<typeof jobsOf>[1]>) =>
    jobsOf(known, { only: undefined, runtime: undefined, effort: 'full', ...options }).map(
      ({ scenario, runtime }) => `${scenario.id} ${runtime}`,
    )

  test('a full run uses all runtimes of a scenario, a quick run only the first', () => {
    expect(idsOf({})).toEqual(['both workerd', 'both node', 'one workerd'])
    expect(idsOf({ effort: 'quick' })).toEqual(['both workerd', 'one workerd'])
  })

  test('selected scenarios run in the order of the registry, and under one runtime', () => {
    expect(idsOf({ only: ['one', 'both'], effort: 'quick' })).toEqual([
      'both workerd',
      'one workerd',
    ])
    expect(idsOf({ runtime: 'node' })).toEqual(['both node'])
  })

  test('an unknown id is reported with the known ones', () => {
    expect(() => idsOf({ only: ['none'] })).toThrow('unknown scenario "none"; known: both, one')
    expect(() => idsOf({ only: [''] })).toThrow('unknown scenario ""')
  })

  test('a selection without scenarios is an error', () => {
    expect(() => idsOf({ only: ['one'], runtime: 'node' })).toThrow('runs under node')
  })
})

/** Runs the scenarios. Returns the result, the progress messages and the saved results. */
async function run(scenarios: readonly Scenario[]) {
  const controller = new AbortController()
  const deferred: (() => Promise<void>)[] = []
  const messages: string[] = []
  const saved: string[][] = []
  const result = await runSuite({
    jobs: jobsOf(scenarios, { only: undefined, runtime: undefined, effort: 'quick' }),
    effort: 'quick',
    detail: DETAIL,
    directory,
    shutdown: {
      signal: controller.signal,
      defer: (close) => void deferred.push(close),
      exit: () => Promise.reject(new Error('the suite must not end the process')),
    },
    onProgress: (what) => messages.push(what),
    onResult: ({ measured }) => saved.push(measured.map(({ scenario }) => scenario)),
  })
  return { result, messages, saved }
}

describe('a run', () => {
  test('a failed scenario is reported in one line and does not stop the others', async () => {
    const broken = scenarioOf('broken', async () => {
      throw new Error('3 wrong responses\ndetails')
    })
    const { result, saved } = await run([scenarioOf('a'), broken, scenarioOf('b')])
    expect(result.failed).toEqual([
      { scenario: 'broken', runtime: 'workerd', why: '3 wrong responses' },
    ])
    expect(result.measured.map(({ scenario, title }) => [scenario, title])).toEqual([
      ['a', 'Of a'],
      ['b', 'Of b'],
    ])
    expect(saved, 'after each scenario').toEqual([['a'], ['a'], ['a', 'b']])
  })

  test('a scenario that failed on a busy machine runs once more, with a note; other failures do not', async () => {
    const STARVED = 'wrong responses from http://a/: 2 with status 503'
    const failing = (message: string, times: number) => {
      let attempts = 0
      return scenarioOf('a', async () => {
        if (++attempts <= times) throw new Error(message)
        return RESULT
      })
    }
    const { measured } = (await run([failing(STARVED, 1)])).result
    expect(measured[0]?.notes?.join()).toContain(STARVED)
    for (const [message, times] of [
      [STARVED, 2],
      ['wrong responses from http://a/: 3 wrong, the first: 200 {}', 1],
      ['wrong responses: 1 with status 503 from http://a/, 1 with status 401 from http://a/', 1],
      ['wrong responses from http://a/: 2 with status 503; 1 wrong, the first: 401 {}', 1],
    ] as const) {
      const { failed } = (await run([failing(message, times)])).result
      expect(failed).toEqual([{ scenario: 'a', runtime: 'workerd', why: message }])
    }
  })

  test('processes of a scenario are closed before the next one begins, also after a failure', async () => {
    const events: string[] = []
    const starting =
      (id: string) =>
      async ({ shutdown }: ScenarioContext) => {
        events.push(`${id} begins`)
        for (const name of ['first', 'second']) {
          shutdown.defer(async () => void events.push(`${id}: ${name} closed`))
        }
        if (id === 'a') throw new Error('failed')
        return RESULT
      }
    await run([scenarioOf('a', starting('a')), scenarioOf('b', starting('b'))])
    expect(events).toEqual([
      'a begins',
      'a: second closed',
      'a: first closed',
      'b begins',
      'b: second closed',
      'b: first closed',
    ])
  })

  test('each scenario has its own folder and receives the detailed options', async () => {
    const seen: ScenarioContext[] = []
    const looking = async (context: ScenarioContext) => {
      seen.push(context)
      return RESULT
    }
    await run([scenarioOf('a', looking), scenarioOf('b', looking)])
    expect(new Set(seen.map((context) => context.directory)).size).toBe(2)
    for (const context of seen) {
      expect(readdirSync(context.directory)).toEqual([])
      expect(context).toMatchObject({ effort: 'quick', runtime: 'workerd', detail: DETAIL })
    }
  })

  test('progress shows the position and the remaining time', async () => {
    const { messages } = await run([scenarioOf('a'), scenarioOf('b')])
    expect(messages[0]).toMatch(/^\[1\/2\] a, workerd: Of a; about 2 s left in all$/)
    expect(messages[1]).toMatch(/^\[2\/2\] b, workerd: Of b; about \d+ s left in all$/)
  })
})

describe('printed results', () => {
  const figure: Figure = {
    id: 'full',
    title: 'full pipeline',
    value: 2.45,
    unit: 'ratio',
    aim: { at: 'most', value: 2.4 },
  }

  test('figures are printed with their aim', () => {
    const text = measuredText({
      scenario: 'a',
      title: 'Of a',
      runtime: 'workerd',
      tookSeconds: 1,
      figures: [figure, { ...figure, title: 'cached', value: 2.4 }],
      checks: [{ what: 'wrong responses', seen: '0 of 12' }],
      notes: ['It was quiet.'],
    })
    expect(text).toMatch(/^full pipeline +2\.45 +at most 2\.4: missed$/m)
    expect(text).toMatch(/^cached +2\.4 +at most 2\.4: met$/m)
    expect(text).toContain('Checked: wrong responses: 0 of 12.')
    expect(text).toContain('It was quiet.')
  })

  test('a value equal to the aim meets it, in either direction', () => {
    expect(aimMet({ value: 5, aim: { at: 'most', value: 5 } })).toBe(true)
    expect(aimMet({ value: 5.1, aim: { at: 'most', value: 5 } })).toBe(false)
    expect(aimMet({ value: 5, aim: { at: 'least', value: 5 } })).toBe(true)
    expect(aimMet({ value: 4.9, aim: { at: 'least', value: 5 } })).toBe(false)
    expect(aimMet({ value: 1 })).toBeUndefined()
  })

  test('numbers have their significant digits', () => {
    expect(valueText({ value: 0.1234, unit: 'ms' })).toBe('0.123 ms')
    expect(valueText({ value: 12.345, unit: 'us' })).toBe('12.3 us')
    expect(valueText({ value: 12_345.6, unit: '1/s' })).toBe('12,346/s')
    expect(valueText({ value: 3, unit: 'count' })).toBe('3')
  })
})
