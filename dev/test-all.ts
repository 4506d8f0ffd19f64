/**
 * `npm run test:all`: every test, in two processes of vitest side by side. Black-box tests of both runtimes, and
 * some on a cluster, each with a stack of its own, and then tests of `bench/` run one file after the other and wait most of the
 * time; in one process, they would begin when all others have ended. They take almost as long as the other tests,
 * so that the same number of files runs all the time. `--check` is for `npm run check`: other checks come before
 * them, and take no time of their own. Their output follows the other output. Exits with 1 if a process fails.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ROOT } from './start/settings.ts'

const VITEST = 'node_modules/vitest/vitest.mjs'
const PARTS = ['parts', 'heap']
const ONE_BY_ONE = [['blackbox'], ['blackbox-node'], ['blackbox-cluster'], ['bench']]
/** Scripts of `package.json`. Without the check of the package, which replaces `dist` while tests use it. */
const CHECKS = process.argv.includes('--check') ? ['lint', 'check:size'] : []

interface Ended {
  readonly failed: boolean
  readonly output: string
}

/** Runs a program. Its output is shown as it comes, or returned. */
async function run(program: string, args: readonly string[], shows = false): Promise<Ended> {
  const child = spawn(program, args, {
    cwd: ROOT,
    stdio: ['ignore', shows ? 'inherit' : 'pipe', shows ? 'inherit' : 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const [code] = await once(child, 'close')
  return { failed: code !== 0, output }
}

const test = (projects: readonly string[], shows?: boolean): Promise<Ended> => {
  const names = projects.flatMap((name) => ['--project', name])
  return run(process.execPath, [VITEST, 'run', ...names], shows)
}

async function runOneByOne(): Promise<readonly Ended[]> {
  const ended: Ended[] = []
  for (const script of CHECKS) ended.push(await run('npm', ['run', script]))
  for (const projects of ONE_BY_ONE) ended.push(await test(projects))
  return ended
}

const [parts, others] = await Promise.all([test(PARTS, true), runOneByOne()])
for (const { output } of others) process.stdout.write(output)
if ([parts, ...others].some(({ failed }) => failed)) process.exitCode = 1
