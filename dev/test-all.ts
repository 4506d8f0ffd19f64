/**
 * `npm run test:all`: the tests of each run, in two processes of vitest side by side. Black-box tests of both runtimes, and
 * some on a cluster, each with a stack of its own, and then tests of `bench/`, the heap and tools run one file after
 * the other and wait most of the time; in one process, they would begin when all others have ended. They take as long
 * as the other tests, so that the same number of files runs all the time. `--check` is for `npm run check`: other
 * checks, types included, run beside them with a low priority, on a core that no test uses. Their output follows the other output.
 * Exits with 1 if a process fails.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { ROOT } from './start/settings.ts'
import { FIRST, ONE_BY_ONE, type TestProcess } from './test-processes.ts'

const VITEST = 'node_modules/vitest/vitest.mjs'
/** Commands. None replaces `dist` while tests use it, so the package is built before. */
const CHECKS: readonly (readonly [string, ...string[]])[] = process.argv.includes('--check')
  ? [
      // More checkers would check shared types again: they end sooner, but only on an idle core.
      ['npm', 'run', 'typecheck', '--', '--checkers', '1'],
      [process.execPath, 'dev/check-package.ts'],
      ['npm', 'run', 'lint'],
      ['npm', 'run', 'check:size'],
    ]
  : []
/** The priority of checks: a tenth of the share of a core that a test gets. */
const LOW_PRIORITY = 10
/** The compiler of TypeScript is a program in Go that ends soon. It needs less CPU if it collects garbage less often. */
const RARE_COLLECTION = { GOGC: '400' }

interface Ended {
  readonly failed: boolean
  readonly output: string
}

interface How {
  /** Shows the output as it comes. Default: it is returned. */
  readonly shows?: boolean
  readonly priority?: number
}

/** Runs a program. */
async function run(
  program: string,
  args: readonly string[],
  { shows = false, priority = 0 }: How = {},
): Promise<Ended> {
  const child = spawn(program, args, {
    cwd: ROOT,
    stdio: ['ignore', shows ? 'inherit' : 'pipe', shows ? 'inherit' : 'pipe'],
    env: { ...RARE_COLLECTION, ...process.env },
  })
  // Its own processes begin with the same.
  if (priority > 0 && child.pid !== undefined) setPriority(child.pid, priority)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const [code] = await once(child, 'close')
  return { failed: code !== 0, output }
}

const test = ({ project, mode, maxWorkers }: TestProcess, how?: How): Promise<Ended> =>
  run(
    process.execPath,
    [
      ...[VITEST, 'run', '--project', project],
      ...(mode === undefined ? [] : ['--mode', mode]),
      ...(maxWorkers === undefined ? [] : ['--maxWorkers', String(maxWorkers)]),
    ],
    how,
  )

const check = ([program, ...args]: readonly [string, ...string[]]): Promise<Ended> =>
  run(program, args, { priority: LOW_PRIORITY })

/** Does one thing after the other. */
async function inOrder<Item>(
  items: readonly Item[],
  act: (item: Item) => Promise<Ended>,
): Promise<readonly Ended[]> {
  const ended: Ended[] = []
  for (const item of items) ended.push(await act(item))
  return ended
}

const [parts, checks, others] = await Promise.all([
  test(FIRST, { shows: true }),
  inOrder(CHECKS, check),
  inOrder(ONE_BY_ONE, (one) => test(one)),
])
for (const { output } of [...checks, ...others]) process.stdout.write(output)
if ([parts, ...checks, ...others].some(({ failed }) => failed)) process.exitCode = 1
