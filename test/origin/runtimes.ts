/** The table of runtimes: every suite that starts a gateway can run on each. */
import { freePort, ROOT, run } from '../harness/process.ts'
import type { StackRuntime } from '../harness/stack.ts'
import { type Running, startWorkerd, type WorkerdOptions } from './workerd.ts'

const NODE = `${ROOT}/node_modules/node/bin/node`
const POLICY = `${ROOT}/portcullis.config.ts`

type Vars = WorkerdOptions['vars']

/** One runtime. */
export interface TestRuntime {
  readonly name: 'workerd' | 'Node'
  /** Starts an entry of `entry.ts`. */
  start(options: WorkerdOptions): Promise<Running>
  /** Starts the shipped gateway, as a user does. */
  startShipped(vars: Vars): Promise<Running>
}

const workerd: TestRuntime = {
  name: 'workerd',
  start: startWorkerd,
  startShipped: (vars) => startWorkerd({ entry: 'workers/gateway.ts', vars }),
}

async function startNode(
  script: string,
  vars: Vars,
  until: string,
  flags: readonly string[] = [],
): Promise<Running> {
  const port = await freePort()
  const environment = { ...vars, PORT: String(port) }
  const { child, output, stop } = await run(
    [NODE, '--max-semi-space-size=16', '--no-allocation-site-pretenuring', ...flags, script],
    environment,
    until,
  )
  return { port, pid: child.pid ?? 0, log: output, stop: async () => void (await stop()) }
}

const node: TestRuntime = {
  name: 'Node',
  start: ({ entry, vars }) =>
    startNode('test/origin/node-process.ts', { ...vars, ENTRY: `${ROOT}/${entry}` }, 'listening'),
  startShipped: (vars) =>
    startNode('test/runtimes/node/process.ts', { ...vars, POLICY }, 'ready on', [
      '--import',
      `${ROOT}/test/harness/source-imports.ts`,
    ]),
}

export const RUNTIMES = [workerd, node] as const

/** The runtime of a stack of black-box tests. */
export const runtimeOf = (stack: StackRuntime): TestRuntime => (stack === 'node' ? node : workerd)

/** Starts the test Worker of this folder, which forwards to `originUrl`. */
export const startForwarding = ({ start }: TestRuntime, originUrl: string): Promise<Running> =>
  start({ entry: 'test/origin/worker.ts', vars: { ORIGIN_URL: originUrl } })
