/** The gateways of the recorded run. Each is a workerd process that can be paused and killed. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Bundle } from '../stack/bundle.ts'
import { startWorkerd, type Workerd } from '../stack/workerd.ts'

const SERVICE = 'gateway'

export interface RecordedGateway {
  /** Returns the URL. It changes with each start. */
  url(): string
  /** Kills the process at once. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Pauses the process until `resume`. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export interface RecordedGatewayOptions {
  readonly bundle: Bundle
  /** Its own temporary directory. */
  readonly directory: string
  readonly variables: Readonly<Record<string, string>>
}

/** Starts a gateway. Throws an `Error` of one line if it does not start. */
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

/** Returns the temporary directory of one gateway. */
export const directoryOf = (directory: string, index: number): string =>
  join(directory, `gateway-${index}`)
