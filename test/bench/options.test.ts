import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LAYERS } from '../../bench/layers.ts'
import { type Options, readOptions, USAGE } from '../../bench/options.ts'
import { CASE_IDS } from '../../bench/token-costs/cases.ts'

const RUN = join(import.meta.dirname, '..', '..', 'bench', 'run.ts')

function run(...args: readonly string[]) {
  return spawnSync(process.execPath, [RUN, ...args], { encoding: 'utf8' })
}

describe('what is asked for', () => {
  test('nothing means all layers under both runtimes', () => {
    expect(readOptions([])).toEqual({
      layers: true,
      profile: false,
      case: undefined,
      tokens: false,
      peers: true,
      runtimes: ['workerd', 'wrangler'],
      measured: LAYERS,
      request: 'read',
      seconds: 2,
      warmUpSeconds: 0.5,
      rounds: 3,
      connections: 20,
      results: undefined,
    } satisfies Options)
  })

  test('a profile alone measures no layers, and both can be asked for', () => {
    expect(readOptions(['--profile'])).toMatchObject({ layers: false, profile: true })
    expect(readOptions(['--profile', '--layers'])).toMatchObject({ layers: true, profile: true })
  })

  test('tokens alone measure no layers; quickly means less time, unless a time is given', () => {
    expect(readOptions(['--tokens'])).toMatchObject({ layers: false, tokens: true, rounds: 3 })
    expect(readOptions(['--tokens', '--quick', '--no-peers', '--rounds', '2'])).toMatchObject({
      tokens: true,
      peers: false,
      seconds: 0.5,
      warmUpSeconds: 0.5,
      rounds: 2,
    })
  })

  test('a profile can be that of one case', () => {
    expect(readOptions(['--profile', '--case', 'issue-jwt'])).toMatchObject({
      layers: false,
      profile: true,
      case: 'issue-jwt',
    })
  })

  test('some layers come in the order of the pipeline, after the baseline', () => {
    const { measured } = readOptions(['--only', 'full,admit']) as Options
    expect(measured.map(({ id }) => id)).toEqual(['passthrough', 'admit', 'full'])
  })

  test('numbers and names are taken as they are', () => {
    const argv = '--seconds 0.5 --rounds 5 --connections 1 --runtime workerd --request write'
    expect(readOptions(argv.split(' '))).toMatchObject({
      seconds: 0.5,
      rounds: 5,
      connections: 1,
      runtimes: ['workerd'],
      request: 'write',
    })
  })
})

describe('what makes no run', () => {
  test.each([
    [['--seconds', '0'], '--seconds must be a number from 0.2 to 60'],
    [['--seconds', '1e1'], '--seconds must be a number from 0.2 to 60'],
    [['--seconds', '61'], '--seconds must be a number from 0.2 to 60'],
    [['--rounds', '1.5'], '--rounds must be a whole number'],
    [['--rounds', '21'], '--rounds must be a number from 1 to 20'],
    [['--connections', '-1'], '--connections'],
    [['--runtime', 'node'], '--runtime must be one of workerd, wrangler, both'],
    [['--request', 'delete'], '--request must be one of read, write'],
    [['--only', 'full,nothing'], '--only: there is no "nothing"'],
    [['--case', 'issue-jwt'], '--case needs --profile'],
    [['--profile', '--case', 'issue'], '--case must be one of issue-jwt, issue-opaque'],
    [['--results', ''], '--results must name a directory'],
    [['--layer'], "Unknown option '--layer'"],
    [['fast'], 'Unexpected argument'],
  ])('%j', (argv, message) => {
    expect(() => readOptions(argv)).toThrow(message)
  })
})

describe('the command', () => {
  test('--help goes to stdout, names every option, and is a success', () => {
    const { status, stdout, stderr } = run('--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout.trim()).toBe(USAGE)
    for (const { id } of LAYERS) expect(stdout).toContain(id)
    for (const id of CASE_IDS) expect(stdout).toContain(id)
  })

  test('a bad option is one clear line on stderr and exit code 2', () => {
    const { status, stdout, stderr } = run('--rounds', 'many')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toBe(
      'bench: --rounds must be a number from 1 to 20\nSee: npm run bench -- --help\n',
    )
  })
})
