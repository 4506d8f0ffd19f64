/** The gateways of the recorded run: a process of workerd each, which can be stopped and killed. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Bundle } from '../bundle.ts'
import { startWorkerd, type Workerd } from '../workerd.ts'

const SERVICE = 'gateway'

export interface RecordedGateway {
  /** Changes as it is started again. */
  url(): string
  /** Ends it, whatever it is at. */
  kill(): Promise<void>
  start(): Promise<void>
  /** It computes nothing until `resume`. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export interface RecordedGatewayOptions {
  readonly bundle: Bundle
  /** Scratch of its own. */
  readonly directory: string
  readonly variables: Readonly<Record<string, string>>
}

/** Starts one. Throws an `Error` of one line if it does not come up. */
export async function startGateway({
  bundle,
  directory,
  variables,
}: RecordedGatewayOptions): Promise<RecordedGateway> {
  mkdirSync(directory, { recursive: true })
  let workerd: Workerd
  async function start(): Promise<void> {
    workerd = await startWorkerd({
      ...{ bundle, directory, variables, names: [SERVICE] },
      queueAddress: new URL(variables.ORIGIN_URL ?? '').host,
    })
  }
  await start()
  const signal = (name: NodeJS.Signals) => process.kill(workerd.pid, name)
  return {
    url: () => workerd.originOf(SERVICE),
    start,
    async kill() {
      signal('SIGKILL')
      await workerd.close()
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    close: () => workerd.close(),
  }
}

/** Scratch of one of them. */
export const directoryOf = (directory: string, index: number): string =>
  join(directory, `gateway-${index}`)
