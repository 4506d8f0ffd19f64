/**
 * A further gateway of a stack, with its own variables or policy. It starts without the tools of `npm start`, which cost
 * several seconds of CPU. On workerd it is the shipped Worker without a queue and a database, so it writes its audit
 * events to its log.
 */
import { join } from 'node:path'
import { prepareDevVars } from '../../dev/dev-vars.ts'
import { startWorkerd } from '../origin/workerd.ts'
import { ROOT, run } from './process.ts'
import type { Stack } from './stack.ts'

export interface FurtherGateway {
  readonly url: string
  /** Returns everything printed so far. */
  output(): string
  stop(): Promise<unknown>
}

const ON_NODE = [
  process.execPath,
  '--import',
  `${ROOT}/test/harness/source-imports.ts`,
  `${ROOT}/test/runtimes/node/process.ts`,
] as const
const GRACE_MS = '1000'
const READY = /ready on (\S+)\n/

/** Starts the gateway. `vars` replace those of the stack; `policy` is a path in the checkout. */
export async function startFurther(
  { runtime, env }: Pick<Stack, 'runtime' | 'env'>,
  { vars = {}, policy }: { vars?: Readonly<Record<string, string>>; policy?: string } = {},
): Promise<FurtherGateway> {
  // The keys of the stack, because each gateway accepts tokens of the others.
  const { SIGNING_KEYS } = await prepareDevVars(join(ROOT, '.dev.vars'), env.PUBLIC_URL ?? '')
  const all = Object.entries({ ...env, SIGNING_KEYS, METRICS_ACCESS: 'public', ...vars })
  const set = Object.fromEntries(all.filter(([, value]) => value !== ''))
  if (runtime === 'workerd') {
    const entry = 'workers/gateway.ts'
    const { port, log, stop } = await startWorkerd({ entry, policy, vars: set })
    return { url: `http://127.0.0.1:${port}`, output: log, stop }
  }
  const POLICY = join(ROOT, policy ?? 'portcullis.config.ts')
  // The process chooses its port, and prints it.
  const { output, stop } = await run(ON_NODE, { ...set, POLICY, GRACE_MS, PORT: '0' }, READY)
  const [, url = ''] = READY.exec(output()) ?? []
  return { url, output, stop }
}
