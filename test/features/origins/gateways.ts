/** Gateways of this folder as processes, on each runtime. */
import { ROOT, run } from '../../harness/process.ts'
import { startWorkerd } from '../../origin/workerd.ts'

type Variables = Readonly<Record<string, string>>

export interface Running {
  readonly port: number
  readonly stop: () => Promise<unknown>
}

export type Runtime = 'workerd' | 'Node'

/** `policy`: name of the policy. Its Worker is `entry`. */
export async function startGateway(
  runtime: Runtime,
  { policy, entry }: { readonly policy: string; readonly entry: string },
  vars: Variables,
): Promise<Running> {
  if (runtime === 'workerd')
    return startWorkerd({ entry: `test/features/origins/${entry}.ts`, vars })
  const node = `${ROOT}/node_modules/node/bin/node`
  const running = await run(
    [node, 'test/features/origins/node-process.ts'],
    { ...vars, POLICY: `./${policy}.ts` },
    /ready on \S+\n/,
  )
  const port = Number(/ready on \S+:(\d+)/.exec(running.output())?.[1])
  return { port, stop: running.stop }
}
