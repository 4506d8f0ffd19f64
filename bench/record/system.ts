/** Starts all processes of a recorded run, with one common clock. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { prepareDevVars } from '../../dev/dev-vars.ts'
import { type AccessTokenRequest, signAccessToken } from '../../dev/start/access-token.ts'
import { HOST } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { type Dependencies, startDependencies, startOrigin } from '../chaos/dependencies.ts'
import type { HistoryEvent } from '../chaos/history.ts'
import { bundleOnce } from '../stack/bundle.ts'
import {
  clientEntry,
  EXCHANGE,
  newClient,
  PUBLIC_URL,
  type TokenClient,
} from '../stack/credentials.ts'
import { startWorkerd, type Workerd, type WorkerdOptions } from '../stack/workerd.ts'
import { type RecordedCluster, startCluster } from './cluster.ts'
import { type RecordedGateway, startNodeGateway } from './node-gateway.ts'
import type { RecordOptions } from './options.ts'
import { PROCESSES } from './terms.ts'

const CONFIG = 'bench/record/worker.toml'
const CLIENT = 'record'
const SERVICE = 'gateway'

export interface System {
  /** Undefined on a cluster. */
  readonly dependencies: Dependencies | undefined
  readonly cluster: RecordedCluster | undefined
  readonly gateways: readonly RecordedGateway[]
  /** The client of all sessions. */
  readonly app: TokenClient
  readonly events: HistoryEvent[]
  sign(request: Omit<AccessTokenRequest, 'client'>): Promise<string>
  /** Returns milliseconds of a monotonic clock. */
  now(): number
}

/** Starts the system in `directory`, a temporary directory. Throws an `Error` of one line. */
export async function startSystem(
  { seed, cluster: isOnCluster }: Pick<RecordOptions, 'seed' | 'cluster'>,
  directory: string,
  shutdown: Pick<Shutdown, 'defer' | 'signal'>,
): Promise<System> {
  const events: HistoryEvent[] = []
  // Rounded to microseconds: more digits would only make the history longer.
  const now = () => Math.round(performance.now() * 1_000) / 1_000
  const record = ({ number: id }: { readonly number: number }) =>
    void events.push({ kind: 'arrival', id, atMs: now() })
  const originPort = await startOrigin(record, '[]', shutdown)
  const { SIGNING_KEYS } = await prepareDevVars(join(directory, 'keys.env'), PUBLIC_URL)
  const app = newClient()
  const own = {
    CLIENTS: JSON.stringify([await clientEntry(app, { grants: ['refresh_token', EXCHANGE] })]),
    PUBLIC_URL,
    ORIGIN_URL: `http://${HOST}:${originPort}`,
    SIGNING_KEYS,
  }
  const cluster = isOnCluster ? await startCluster(seed, shutdown) : undefined
  const targets = Array<'redis'>(PROCESSES).fill('redis')
  const dependencies = isOnCluster
    ? undefined
    : await startDependencies({ seed, targets, directory }, shutdown)
  const bundle = isOnCluster ? undefined : await bundleOnce(CONFIG, directory)
  const gateways: RecordedGateway[] = []
  for (let index = 0; index < PROCESSES; index++) {
    shutdown.signal.throwIfAborted()
    const data = mkdtempSync(join(directory, 'gateway-'))
    const gateway =
      bundle !== undefined
        ? await startGateway({
            bundle,
            directory: data,
            variables: {
              UPSTASH_REDIS_REST_URL: dependencies?.urls[index] ?? '',
              UPSTASH_REDIS_REST_TOKEN: dependencies?.restToken ?? '',
              ...own,
            },
          })
        : await startNodeGateway({
            REDIS_URL: cluster?.urlOf(index) ?? '',
            AUDIT_DATABASE: `sqlite:${join(data, 'audit.db')}`,
            ...own,
          })
    shutdown.defer(gateway.close)
    gateways.push(gateway)
  }
  const sign = (request: Omit<AccessTokenRequest, 'client'>) =>
    signAccessToken({ ...request, client: CLIENT }, { PUBLIC_URL, SIGNING_KEYS })
  return { dependencies, cluster, gateways, app, events, sign, now }
}

/** Starts a gateway. Throws an `Error` of one line if it does not start. */
async function startGateway({
  bundle,
  directory,
  variables,
}: Pick<WorkerdOptions, 'bundle' | 'directory' | 'variables'>): Promise<RecordedGateway> {
  let workerd: Workerd
  async function start(): Promise<void> {
    workerd = await startWorkerd({
      bundle,
      directory,
      variables,
      names: [SERVICE],
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
