import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { readOptions, USAGE } from '../../bench/compare/options.ts'
import { findRevision } from '../../bench/compare/sides.ts'
import type { Comparison } from '../../bench/compare/verdict.ts'
import { createPatience } from '../../bench/measure/starvation.ts'
import { ROOT } from '../../dev/start/settings.ts'
import { IS_LONG } from '../harness/long.ts'

const RUN = join(ROOT, 'bench', 'compare', 'run.ts')
const COMPARED = join(ROOT, '.wrangler', 'compare')

describe('options', () => {
  test('BASE alone is compared with HEAD', () => {
    expect(readOptions(['main'])).toMatchObject({
      base: 'main',
      head: 'HEAD',
      starts: 8,
      pairs: 2,
      seconds: 2,
      thresholdPercent: 10,
      slowDownPercent: 0,
      request: 'read',
      runtime: 'workerd',
      durable: false,
      results: undefined,
      markdown: undefined,
    })
  })

  test.each([
    [[], 'BASE is missing'],
    [['a', 'b', 'c'], 'unexpected argument "c"'],
    [['a', '--starts', '5'], '--starts must be a number from 6 to 99'],
    [['a', '--starts', '6.5'], '--starts must be a whole number'],
    [['a', '--pairs', '0'], '--pairs must be a number from 1 to 99'],
    [['a', '--seconds', '0'], '--seconds must be a number from 0.5 to 60'],
    [['a', '--threshold', '0'], '--threshold must be a number from 1 to 1000'],
    [['a', '--slow-down', '0'], '--slow-down must be a number from 1 to 1000'],
    [['a', '--request', 'delete'], '--request must be one of read, write'],
    [['a', '--results', ''], '--results must name a directory'],
    [['a', '--markdown', ''], '--markdown must name a file'],
    [['a', '--durable'], '--durable needs --runtime node'],
    [['a', '--runtime', 'node', '--slow-down', '9'], '--slow-down needs --runtime workerd'],
    [['a', '--fast'], "Unknown option '--fast'"],
  ])('%j is refused', (argv, message) => {
    expect(() => readOptions(argv)).toThrow(message)
  })

  test('a name that begins with a dot or a slash is a directory, and must be a checkout', async () => {
    expect(await findRevision('.', ROOT)).toMatchObject({ directory: ROOT, commit: undefined })
    await expect(findRevision('./src', ROOT)).rejects.toThrow('./src is not a checkout')
  })

  test('an option of git, or an unknown revision, is an error', async () => {
    await expect(findRevision('--all', ROOT)).rejects.toThrow('unknown revision --all')
    await expect(findRevision('no-such', ROOT)).rejects.toThrow('unknown revision no-such')
  })

  test('an invalid option is one clear line on stderr and exit code 2; --help exits with 0', () => {
    const run = (...args: readonly string[]) =>
      spawnSync(process.execPath, [RUN, ...args], { encoding: 'utf8' })
    expect(run('no-such')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: 'compare: unknown revision no-such\nSee: npm run bench:compare -- --help\n',
    })
    expect(run('--help')).toMatchObject({ status: 0, stdout: `${USAGE}\n`, stderr: '' })
  })
})

describe('a measurement that failed on a starved machine', () => {
  const starved = 'wrong responses from http://x: 3 with status 503'
  const patience = () =>
    createPatience(
      () => {},
      async () => {},
    )

  test('is repeated, and the repeats are counted', async () => {
    const patiently = patience()
    const outcomes = [starved, starved, undefined]
    const measured = await patiently(async () => {
      const problem = outcomes.shift()
      if (problem !== undefined) throw new Error(problem)
      return 'measured'
    })
    expect(measured).toBe('measured')
    expect(patiently.repeats).toBe(2)
  })

  test('is given up after too many repeats', async () => {
    let tries = 0
    const broken = async () => {
      tries++
      throw new Error(starved)
    }
    await expect(patience()(broken)).rejects.toThrow('503')
    expect(tries).toBe(6)
  })

  test.each([
    'wrong responses from http://x: 3 wrong, the first: 200 {}',
    'wrong responses from http://x: 3 with status 503; 1 wrong, the first: 401 {}',
    'full: 3 calls to Redis for 2 responses',
  ])('%s: is not starvation', async (problem) => {
    const patiently = patience()
    await expect(patiently(() => Promise.reject(new Error(problem)))).rejects.toThrow(problem)
    expect(patiently.repeats).toBe(0)
  })
})

describe('npm run bench:compare', () => {
  const results = mkdtempSync(join(tmpdir(), 'compare-test-'))
  afterAll(() => rmSync(results, { recursive: true, force: true }))

  // A checkout without its history, such as an archive, has no revisions to compare.
  const hasHistory = existsSync(join(ROOT, '.git'))

  // In each run, compare-verdict.test.ts proves the verdicts, and the test below starts a side.
  test.runIf(IS_LONG && hasHistory)(
    'the last commit, slowed down three times, is a regression, and leaves no files behind',
    { timeout: 300_000 },
    async () => {
      const run = promisify(execFile)
      const running = run(
        process.execPath,
        [
          ...[RUN, 'HEAD', '--slow-down', '200', '--pairs', '1', '--seconds', '0.5'],
          ...['--starts', '6', '--warm-up', '1', '--connections', '4', '--results', results],
        ],
        { cwd: ROOT },
      )
      const own = join(COMPARED, `${running.child.pid}-`)
      const ended = await running.catch(
        (error: { code: number; stdout: string; stderr: string }) => error,
      )
      expect(ended, ended.stderr).toMatchObject({ code: 1 })
      expect(ended.stdout).toContain('regression: HEAD takes more than 10 % more CPU than BASE.')

      const [file = ''] = readdirSync(results)
      const comparison = JSON.parse(readFileSync(join(results, file), 'utf8')) as Comparison
      expect(comparison.verdict).toBe('regression')
      expect(comparison.burnedRounds).toBeGreaterThan(0)
      expect(comparison.base.commit).toMatch(/^[0-9a-f]{12}$/)
      expect(comparison.starts).toHaveLength(6)
      expect(comparison.pairs).toHaveLength(6)
      for (const { base, head } of comparison.pairs) {
        expect(base.requests).toBeGreaterThan(0)
        expect(head.requests).toBeGreaterThan(0)
      }
      expect(ended.stderr).toContain('starting HEAD')
      expect((await run('git', ['worktree', 'list'], { cwd: ROOT })).stdout).not.toContain(own)
      expect(readdirSync(COMPARED).map((name) => join(COMPARED, name))).not.toContainEqual(
        expect.stringContaining(own),
      )
    },
  )

  test.skipIf(!hasHistory)(
    'an interrupted comparison exits with 1 and leaves no files behind',
    async () => {
      const child = spawn(process.execPath, [RUN, 'HEAD'], { cwd: ROOT })
      // The pipe stays open, because a write to a closed pipe would end the process.
      await new Promise<void>((resolve) => {
        let output = ''
        child.stderr.on('data', (chunk) => {
          output += chunk
          if (output.includes('starting BASE')) resolve()
        })
        child.once('exit', () => resolve())
      })
      child.kill('SIGINT')
      expect(await once(child, 'exit')).toEqual([1, null])
      expect(readdirSync(COMPARED).filter((name) => name.startsWith(`${child.pid}-`))).toEqual([])
    },
  )
})
