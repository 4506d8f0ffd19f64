/**
 * A further gateway of a stack, with variables or a policy of its own, without the tools of `npm start`: their start costs
 * several seconds of CPU. On workerd it is the shipped Worker, without a queue and a database: its log has its events.
 */
import { join } from 'node:path'
import { prepareDevVars } from '../../dev/dev-vars.ts'
import { startWorkerd } from '../origin/workerd.ts'
import { freePort, ROOT, run } from './process.ts'
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

/** Starts the gateway. `vars` replace those of the stack; `policy` is a path in the checkout. */
export async function startFurther(
  { runtime, env }: Pick<Stack, 'runtime' | 'env'>,
  { vars = {}, policy }: { vars?: Readonly<Record<string, string>>; policy?: string } = {},
): Promise<FurtherGateway> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  // The keys of the stack, because each gateway accepts tokens of the others.
  const { SIGNING_KEYS } = await prepareDevVars(join(ROOT, '.dev.vars'), env.PUBLIC_URL ?? '')
  const all = Object.entries({ ...env, SIGNING_KEYS, METRICS_ACCESS: 'public', ...vars })
  const set = Object.fromEntries(all.filter(([, value]) => value !== ''))
  if (runtime === 'workerd') {
    const entry = 'workers/gateway.ts'
    const { log, stop } = await startWorkerd({ entry, policy, port, vars: set })
    return { url, output: log, stop }
  }
  const POLICY = join(ROOT, policy ?? 'portcullis.config.ts')
  const own = { ...set, POLICY, GRACE_MS, PORT: String(port) }
  const { output, stop } = await run(ON_NODE, own, 'ready on')
  return { url, output, stop }
}
