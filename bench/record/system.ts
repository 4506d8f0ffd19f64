/** Starts all processes of a recorded run, with one common clock. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { prepareDevVars } from '../../dev/dev-vars.ts'
import { type AccessTokenRequest, signAccessToken } from '../../dev/start/access-token.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { type Child, startChild } from '../processes/child.ts'
import { bundleOnce } from '../stack/bundle.ts'
import { PUBLIC_URL } from '../stack/credentials.ts'
import { directoryOf, type RecordedGateway, startGateway } from './gateways.ts'
import type { HistoryEvent } from './history.ts'
import { startOrigin } from './origin.ts'
import type { Question, SurroundingsReady } from './surroundings.ts'
import { PROCESSES } from './terms.ts'

const CONFIG = 'bench/record/worker.toml'
const SECRET_BYTES = 32
const CLIENT = 'record'

export interface System {
  readonly surroundings: Omit<Child<SurroundingsReady>, 'ask'> & {
    ask(question: Question): Promise<unknown>
  }
  /** Token of the REST server. */
  readonly restToken: string
  readonly gateways: readonly RecordedGateway[]
  /** All recorded events so far. */
  readonly events: HistoryEvent[]
  /** Signs a token that all gateways accept. */
  sign(request: Omit<AccessTokenRequest, 'client'>): Promise<string>
  /** Returns milliseconds of a monotonic clock. */
  now(): number
}

/** Starts the system in `directory`, a temporary directory. Throws an `Error` of one line. */
export async function startSystem(
  seed: number,
  directory: string,
  shutdown: Pick<Shutdown, 'defer' | 'signal'>,
): Promise<System> {
  const events: HistoryEvent[] = []
  // Rounded to microseconds: more digits would only make the history longer.
  const now = () => Math.round(performance.now() * 1_000) / 1_000
  const origin = await startOrigin((id) => events.push({ kind: 'arrival', id, atMs: now() }))
  shutdown.defer(origin.close)
  const { SIGNING_KEYS } = await prepareDevVars(join(directory, 'keys.env'), PUBLIC_URL)
  const token = randomBytes(SECRET_BYTES).toString('base64url')
  const surroundings = await startChild<SurroundingsReady>(
    join(import.meta.dirname, 'surroundings.ts'),
    { REST_TOKEN: token, DIRECTORY: directory, SEED: String(seed) },
  )
  shutdown.defer(surroundings.close)
  const bundle = await bundleOnce(CONFIG, directory)
  const gateways: RecordedGateway[] = []
  for (let index = 0; index < PROCESSES; index++) {
    shutdown.signal.throwIfAborted()
    const gateway = await startGateway({
      bundle,
      directory: directoryOf(directory, index),
      variables: {
        UPSTASH_REDIS_REST_URL: surroundings.ready.urls[index] ?? '',
        UPSTASH_REDIS_REST_TOKEN: token,
        PUBLIC_URL,
        ORIGIN_URL: origin.url,
        SIGNING_KEYS,
      },
    })
    shutdown.defer(gateway.close)
    gateways.push(gateway)
  }
  return {
    ...{ surroundings, restToken: token, gateways, events, now },
    sign: (request) =>
      signAccessToken({ ...request, client: CLIENT }, { PUBLIC_URL, SIGNING_KEYS }),
  }
}
