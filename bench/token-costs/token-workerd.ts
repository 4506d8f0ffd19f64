/** Runs what the scenario `tokens` measures under `workerd serve`. */
import type { Bench } from '../bench.ts'
import { type Bundle, bundleWorker, TOKENS_CONFIG } from '../bundle.ts'
import { gatewayVariables } from '../target.ts'
import { startWorkerd, type Workerd } from '../workerd.ts'
import { prepareCallers } from './callers.ts'
import { type Case, casesOf } from './cases.ts'
import { preflightTokens } from './preflight.ts'

export const TOKEN_SERVICES = ['operations', 'validation', 'gateway'] as const

export interface TokenWorkerd {
  readonly workerd: Workerd
  readonly bundle: Bundle
  readonly cases: readonly Case[]
  /** Of the Worker. */
  readonly variables: Readonly<Record<string, string>>
}

/** Starts an isolate for each service, with callers, and makes sure that all of it works. */
export async function startTokens(bench: Bench, inspect = false): Promise<TokenWorkerd> {
  const { backends, directory, shutdown, onProgress } = bench
  onProgress('bundling')
  // A profile needs names.
  const bundle = await bundleWorker(TOKENS_CONFIG, directory, inspect)
  onProgress('signing tokens')
  const callers = await prepareCallers(backends)
  const variables = {
    ...gatewayVariables(backends, callers.signingKeys),
    CLIENTS: callers.clients,
  }
  const workerd = await startWorkerd({
    bundle,
    directory,
    inspect,
    variables,
    names: TOKEN_SERVICES,
    queueAddress: new URL(backends.originUrl).host,
  })
  shutdown.defer(workerd.close)
  shutdown.signal.throwIfAborted()
  const cases = casesOf(callers)
  await preflightTokens(workerd, cases, callers)
  return { workerd, bundle, cases, variables }
}
