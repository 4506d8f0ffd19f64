/** Checks a Redis over RESP, as a gateway on Node uses it. */
import { Misconfigured, Unavailable } from '../../src/errors.ts'
import { connectResp, type RespOptions } from '../../src/runtimes/node/redis/resp.ts'
import { type Finding, mistake, ok, warning } from './finding.ts'
import { type Store, storeFindings } from './redis.ts'
import { TIMEOUT_MS } from './request.ts'

const CHECK = 'redis'
const CLUSTER_REMEDY = 'docs/redis-cluster.md describes it.'

export interface RespTarget
  extends Pick<Store, 'prefix' | 'timeoutMs'>,
    Pick<RespOptions, 'fenceMs' | 'replicasAcked' | 'acceptsEviction'> {
  readonly url: string
}

/** Runs all checks. */
export async function checkResp({ prefix, ...target }: RespTarget): Promise<readonly Finding[]> {
  const client = connectResp({ ...target, keyPrefix: prefix })
  const { send: sendWithin, keys, lanes } = client.connect({ timeoutMs: TIMEOUT_MS })
  const send: Store['send'] = (commands) =>
    sendWithin(commands).catch((error) => {
      if (!(error instanceof Unavailable)) throw error
      return error.fault === 'timeout'
        ? `does not respond within ${TIMEOUT_MS} ms`
        : 'cannot be reached'
    })
  try {
    const warnings = await client.check()
    const replies = await send([
      ['INFO', 'server'],
      ['INFO', 'replication'],
    ])
    if (typeof replies === 'string')
      return [
        mistake(CHECK, `REDIS_URL: ${replies}`, 'Start Redis, or correct REDIS_URL.'),
        // Of one server, the warning says the same.
        ...(lanes === undefined
          ? []
          : warnings.map((text) => warning(CHECK, text, CLUSTER_REMEDY))),
      ]
    const info = replies.map(({ result }) => String(result)).join('\n')
    return [
      ok(CHECK, serverIn(info)),
      ...(lanes === undefined
        ? []
        : [ok(CHECK, `a cluster of ${client.masters().size} masters, ${lanes.all.length} lanes`)]),
      ...warnings.map((text) => warning(CHECK, text, CLUSTER_REMEDY)),
      // Of a cluster, the control lane.
      ...(await storeFindings({
        prefix: keys.prefix,
        timeoutMs: target.timeoutMs,
        send,
        keyLocking: false,
      })),
    ]
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    const remedy = 'Correct REDIS_URL; docs/environment.md describes it.'
    return error.mistakes.map((text) => mistake(CHECK, text, remedy))
  } finally {
    client.close()
  }
}

/** Returns such as `Valkey 9.1.2, master`. */
function serverIn(info: string): string {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const valkey = field('valkey_version')
  const server = valkey === undefined ? `Redis ${field('redis_version')}` : `Valkey ${valkey}`
  return `${server}, ${field('role') ?? 'of unknown role'}`
}
