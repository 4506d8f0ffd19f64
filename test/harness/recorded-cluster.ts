/** A real cluster whose gates record the calls of gateways, and simulate faults set through `/__control`. */
import { DEFAULT_KEY_PREFIX } from '../../src/redis/keys.ts'
import { BEHIND_ANSWERS, type Controlled, type Recorded, startControl } from './control.ts'
import { startRedisCluster, type TestCluster } from './redis-cluster.ts'

/** Lanes of the gateways. */
export const LANES = 64
/** The tag in the names of keys. Records have the names of one Redis, as tests know them. */
const TAG = new RegExp(`(${DEFAULT_KEY_PREFIX})\\{\\w+\\}:`, 'g')
const withoutTag = (command: string) => command.replaceAll(TAG, '$1')
/** Calls of a gateway for itself: to connect, to prove a master, and to complete what others began. */
const OF_GATEWAY = /^(?:INFO|PING|CLUSTER|CONFIG|AUTH|HELLO|SELECT|WAIT|ASKING)$/i
/** A mark behind the commands of a write proves the order of their replies. In a write of its own it would be a round trip. */
const isMark = ([name]: readonly string[], at: number) => at > 0 && name === 'ECHO'
const BESIDE_REQUESTS = /^EXISTS pc:marker| 1 pc:pending-facts /
/**
 * A client compares the lanes once, before its first call. The thread of the trail has clients of its own: on a slow
 * machine it connects one at any time, to send its spool. A second comparison of a connection counts as a call.
 */
const OF_COMPARISON = /^(?:GET|SET) pc:(?:marker|lanes)\b/

export interface RecordedCluster {
  readonly cluster: TestCluster
  /** `REDIS_URL` of the gateways. */
  readonly url: string
  /** The gates, as tests control a server. A record is what arrived in one write. */
  readonly controlled: Controlled
  close(): Promise<void>
}

/** The deadline of a call and the fence must be shorter than the time after which a master is replaced. */
const TIMEOUTS = 3

/** Starts three masters without replicas, for gateways with a deadline and a fence of `timeoutMs`. */
export async function startRecordedCluster(timeoutMs: number): Promise<RecordedCluster> {
  let records: Recorded[] = []
  const recordOf = (body: string): Recorded => ({
    ...{ method: 'POST', url: '/pipeline', headers: {}, body },
  })
  const compared = new WeakMap<object, Set<string>>()
  const onCommands = (commands: readonly (readonly string[])[], connection: object): void => {
    const known = compared.get(connection) ?? new Set()
    compared.set(connection, known)
    const isFirstComparison = (command: string) => {
      const isFirst = !known.has(command) && OF_COMPARISON.test(withoutTag(command))
      if (isFirst) known.add(command)
      return isFirst
    }
    const bodies = commands
      .filter((command, at) => !OF_GATEWAY.test(command[0] ?? '') && !isMark(command, at))
      .map((command) => command.join(' '))
      .filter((command) => !isFirstComparison(command))
      .map(withoutTag)
      .filter((body) => !BESIDE_REQUESTS.test(body))
    const [behind, own] = [true, false].map((isBehind) =>
      bodies.filter((body) => BEHIND_ANSWERS.test(body) === isBehind),
    )
    records.push(...(behind ?? []).map(recordOf))
    // Commands of one call are sent in one write.
    if (own !== undefined && own.length > 0) records.push(recordOf(own.join('\n')))
  }
  const cluster = await startRedisCluster({
    replicas: 0,
    args: ['--cluster-node-timeout', String(TIMEOUTS * timeoutMs)],
    gates: { onCommands },
  })
  const control = await startControl({
    records: () => records,
    forget() {
      records = []
    },
    setMode(mode) {
      for (const { gates } of cluster.nodes) gates?.clients.set(() => mode)
    },
  })
  const url = `${cluster.url}/?lanes=${LANES}`
  return {
    cluster,
    url,
    controlled: { url, controlUrl: control.url },
    async close() {
      await control.close()
      await cluster.close()
    },
  }
}
