import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Options, readOptions, USAGE } from '../../bench/options.ts'
import { SCENARIOS } from '../../bench/scenarios/index.ts'

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'run.ts')

function run(...args: readonly string[]) {
  return spawnSync(process.execPath, [RUN, ...args], { encoding: 'utf8' })
}

describe('options', () => {
  test('without options: every scenario, in full, under each of its runtimes', () => {
    expect(readOptions([])).toEqual({
      effort: 'full',
      only: undefined,
      runtime: undefined,
      list: false,
      profile: false,
      results: undefined,
      request: 'read',
      durable: false,
    } satisfies Options)
  })

  test('some scenarios, under one runtime, with some tables up to a size', () => {
    const argv = '--only leases,growth --runtime workerd --tables routes,tokens --most 1000000'
    expect(readOptions(argv.split(' '))).toMatchObject({
      only: ['leases', 'growth'],
      runtime: 'workerd',
      tables: ['routes', 'tokens'],
      most: 1_000_000,
    })
  })

  test('numbers and names are parsed', () => {
    const argv = '--seconds 0.5 --rounds 5 --connections 1 --request write'
    expect(readOptions(argv.split(' '))).toMatchObject({
      seconds: 0.5,
      rounds: 5,
      connections: 1,
      request: 'write',
    })
  })
})

describe('invalid options', () => {
  test.each([
    [['--seconds', '0'], '--seconds must be a number from 0.2 to 60'],
    [['--seconds', '1e1'], '--seconds must be a number from 0.2 to 60'],
    [['--seconds', '61'], '--seconds must be a number from 0.2 to 60'],
    [['--rounds', '1.5'], '--rounds must be a whole number'],
    [['--rounds', '21'], '--rounds must be a number from 1 to 20'],
    [['--connections', '-1'], '--connections'],
    [['--runtime', 'deno'], '--runtime must be one of workerd, node'],
    [['--request', 'delete'], '--request must be one of read, write'],
    [['--most', '0.5'], '--most must be a number from 1 to 9999999'],
    [['--results', ''], '--results must name a directory'],
    [['--tokens'], "Unknown option '--tokens'"],
    [['fast'], 'Unexpected argument'],
  ])('%j', (argv, message) => {
    expect(() => readOptions(argv)).toThrow(message)
  })
})

describe('the command', () => {
  test('--help prints every option to stdout and exits with 0', () => {
    const { status, stdout, stderr } = run('--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout.trim()).toBe(USAGE)
  })

  test('--list prints every scenario and measures nothing', () => {
    const { status, stdout, stderr } = run('--list')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    for (const { id, title } of SCENARIOS) expect(stdout).toContain(`${id}: ${title}`)
  })

  test('an unknown scenario is reported with the known ones', () => {
    const { status, stdout, stderr } = run('--only', 'leases,nothing')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(
      'bench: --only: unknown scenario "nothing"; known: node, leases, bursts, growth',
    )
  })

  test('an invalid option is one clear line on stderr and exit code 2', () => {
    const { status, stdout, stderr } = run('--rounds', 'many')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toBe(
      'bench: --rounds must be a number from 1 to 20\nSee: npm run bench -- --help\n',
    )
  })
})
