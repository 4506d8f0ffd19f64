/** Starts the gateway of the scenarios about requests: backends, callers, and workerd. */
import { type Backends, startBackends } from '../backends.ts'
import { bundleOnce } from '../gateway.ts'
import type { ScenarioContext } from '../scenario.ts'
import { gatewayVariables } from '../target.ts'
import { untilQuiet } from '../usage.ts'
import { startWorkerd } from '../workerd.ts'
import { type Asking, ask, type Question } from './ask.ts'
import { type Credentials, createCredentials } from './credentials.ts'
import type { Variant } from './variants.ts'

const CONFIG = 'bench/workers/requests.toml'
/** Number of warm-up requests, whatever their duration. */
const WARM_UP_REQUESTS = 1_000
const WARM_UP_CONNECTIONS = 20

export interface RequestsGateway extends Credentials {
  readonly backends: Backends
  /** The workerd process with all isolates. */
  readonly pid: number
  /** Returns scheme, authority and first segment of an isolate. */
  urlOf(isolate: string): string
  /** Ends the gateway and its dependencies. */
  close(): Promise<void>
}

export interface RequestsGatewayOptions {
  /** The variant of each isolate, by its name. */
  readonly isolates: Readonly<Record<string, Variant>>
  /** Variables of the Worker in addition to those of every gateway. */
  readonly variables?: Readonly<Record<string, string>>
  /** Variables that depend on the backends. */
  readonly variablesOf?: (backends: Backends) => Promise<Readonly<Record<string, string>>>
}

/** Starts the gateway. Throws an `Error` of one line if a process does not start. */
export async function startRequestsGateway(
  { directory, shutdown, onProgress }: ScenarioContext,
  { isolates, variables = {}, variablesOf = async () => ({}) }: RequestsGatewayOptions,
): Promise<RequestsGateway> {
  onProgress('starting')
  const [backends, bundle] = await Promise.all([startBackends(), bundleOnce(CONFIG, directory)])
  shutdown.defer(backends.close)
  const credentials = await createCredentials(backends)
  const workerd = await startWorkerd({
    ...{ bundle, directory, names: Object.keys(isolates) },
    variables: {
      ...gatewayVariables(backends, credentials.signingKeys),
      ...variables,
      ...(await variablesOf(backends)),
    },
    queueAddress: new URL(backends.originUrl).host,
  })
  shutdown.defer(workerd.close)
  shutdown.signal.throwIfAborted()
  return {
    ...credentials,
    backends,
    pid: workerd.pid,
    urlOf: (isolate) => `${workerd.originOf(isolate)}/${isolates[isolate]}`,
    async close() {
      await workerd.close()
      await backends.close()
    },
  }
}

/**
 * Sends requests until V8 has compiled the measured code. Throws for a wrong response other than
 * 503.
 */
export async function warmUp(
  { backends }: Pick<RequestsGateway, 'backends'>,
  asking: Omit<Asking, 'connections' | 'until'>,
): Promise<void> {
  const { length } = asking.questions
  const questions = Array.from(
    { length: WARM_UP_REQUESTS },
    (_, index) => asking.questions[index % length] as Question,
  )
  await ask({
    ...{ ...asking, questions, connections: WARM_UP_CONNECTIONS },
    ...{ until: 'once', mayShed: true },
  })
  await untilQuiet(backends)
}
