import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LAYERS } from '../../bench/layers/layers.ts'
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
      layers: LAYERS,
      request: 'read',
      seconds: 1.5,
      warmUpSeconds: 0.5,
      rounds: 7,
      connections: 20,
    } satisfies Options)
  })

  test('--quick uses shorter times, unless given', () => {
    expect(readOptions(['--quick', '--rounds', '2'])).toMatchObject({
      effort: 'quick',
      seconds: 0.4,
      warmUpSeconds: 0.2,
      rounds: 2,
    })
  })

  test('some scenarios, under one runtime', () => {
    expect(readOptions(['--only', 'layers,tokens', '--runtime', 'wrangler'])).toMatchObject({
      only: ['layers', 'tokens'],
      runtime: 'wrangler',
    })
  })

  test('--relations selects that scenario', () => {
    expect(readOptions(['--relations', '--quick'])).toMatchObject({
      only: ['relations'],
      effort: 'quick',
    })
    expect(SCENARIOS.map(({ id }) => id)).toContain('relations')
  })

  test('selected layers are in the order of the pipeline, after the baseline', () => {
    const { layers } = readOptions(['--layers', 'full,admit']) as Options
    expect(layers.map(({ id }) => id)).toEqual(['passthrough', 'admit', 'full'])
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
    [['--runtime', 'deno'], '--runtime must be one of workerd, wrangler, node'],
    [['--request', 'delete'], '--request must be one of read, write'],
    [['--layers', 'full,nothing'], '--layers: unknown layer "nothing"'],
    [['--relations', '--only', 'layers'], '--relations cannot be combined with --only'],
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
    for (const { id } of LAYERS) expect(stdout).toContain(id)
  })

  test('--list prints every scenario and measures nothing', () => {
    const { status, stdout, stderr } = run('--list')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    for (const { id, title } of SCENARIOS) expect(stdout).toContain(`${id}: ${title}`)
  })

  test('an unknown scenario is reported with the known ones', () => {
    const { status, stdout, stderr } = run('--only', 'layers,nothing')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain('bench: --only: unknown scenario "nothing"; known: layers, ')
  })

  test('an invalid option is one clear line on stderr and exit code 2', () => {
    const { status, stdout, stderr } = run('--rounds', 'many')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toBe(
      'bench: --rounds must be a number from 1 to 20\nSee: npm run bench -- --help\n',
    )
  })
})
