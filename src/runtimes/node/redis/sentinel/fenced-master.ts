/** The master behind Sentinels, and its fence: a paused master that was replaced must not be believed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisServer, RedisTarget } from '../../environment/redis-url.ts'
import { createFencedServer, type FencedServer, tickMsOf } from '../fence/fenced-server.ts'
import { createRespSocket, type RespSocket } from '../socket/resp-socket.ts'

export interface FencedMaster extends FencedServer {
  /** Begins to watch the master, in the background. */
  start(): void
  /** Returns the shortest time after which a Sentinel replaces a silent master. Undefined: none answers. */
  downAfterMs(): Promise<number | undefined>
}

export interface FencedMasterOptions {
  /** Sentinels and the name of their master. */
  readonly target: RedisTarget
  readonly silenceMs: number
  readonly fenceMs: number
}

/** What one Sentinel reports about the master. */
interface View {
  readonly server: RedisServer
  readonly flags: readonly string[]
  readonly downAfterMs: number
}

/** The master is about to be replaced. */
const IN_DOUBT = ['o_down', 'failover_in_progress', 'force_failover']
/** This Sentinel does not reach the master, which is no doubt if it is alone: it may have an old password. */
const UNREACHED = 's_down'
/** A Sentinel that takes longer counts as one without an answer: a proof must fit into the fence. */
const ANSWER_MS = 100
/** The answers of most Sentinels decide. The others may object for so long. */
const OBJECTION_MS = 25

/** Creates the master. It connects when the first call needs it. */
export function createFencedMaster({
  target,
  silenceMs,
  fenceMs,
}: FencedMasterOptions): FencedMaster {
  const sentinels = target.servers.map((server) =>
    createRespSocket(
      { ...target, ...target.sentinelLogin, servers: [server], master: undefined, database: 0 },
      silenceMs,
      { accept: () => {}, isMarked: false },
    ),
  )
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let first: RedisServer | undefined
  const majority = Math.floor(sentinels.length / 2) + 1

  async function viewOf(sentinel: RespSocket, within: { isExpired: boolean }): Promise<View> {
    const [reply] = await sentinel.send([['SENTINEL', 'MASTER', target.master ?? '']], within)
    return viewIn(reply?.result)
  }

  /** Returns the views of all Sentinels, or of those that have answered in time. */
  function views(): Promise<readonly View[]> {
    return new Promise((resolve) => {
      const found: View[] = []
      const within = { isExpired: false }
      let open = sentinels.length
      const end = () => {
        within.isExpired = true
        resolve(found)
      }
      const endAfter = (ms: number) => void sleep(ms, undefined, { ref: false }).then(end)
      endAfter(ANSWER_MS)
      for (const sentinel of sentinels)
        viewOf(sentinel, within)
          .then((view) => {
            if (within.isExpired) return
            found.push(view)
            if (found.length === majority) endAfter(OBJECTION_MS)
          })
          .catch(() => {})
          .finally(() => {
            open -= 1
            if (open === 0) end()
          })
    })
  }

  /** Returns the master that most Sentinels name, if none is replacing it. */
  async function agreed(): Promise<RedisServer> {
    const all = await views()
    const count = (holds: (view: View) => boolean) => all.filter(holds).length
    const named = all.find(({ server }) => count((view) => isSame(view.server, server)) >= majority)
    if (named === undefined)
      throw new Error('most Sentinels do not answer, or name different masters')
    if (all.some(({ flags }) => IN_DOUBT.some((flag) => flags.includes(flag))))
      throw new Error('a Sentinel is about to replace the master')
    if (count(({ flags }) => flags.includes(UNREACHED)) >= majority)
      throw new Error('most Sentinels do not reach the master')
    return named.server
  }

  const server = createFencedServer({
    // Found here, and not by the library, which waits for each Sentinel in turn.
    target: () => ({ ...target, servers: first === undefined ? [] : [first], master: undefined }),
    silenceMs,
    fenceMs,
    // The sockets that open next are those of the master that the Sentinels name between two answers.
    async prepare(server) {
      server.reset(new Error('the master must be found anew'))
      first = await agreed()
    },
    async confirm() {
      if (first === undefined || !isSame(await agreed(), first))
        throw new Error('the Sentinels name another master')
    },
  })

  return {
    ...server,
    start() {
      if (isClosed || !Number.isFinite(fenceMs)) return
      timer ??= setInterval(server.tick, tickMsOf(fenceMs)).unref()
    },
    async downAfterMs() {
      const found = (await views()).map(({ downAfterMs }) => downAfterMs)
      return found.length === 0 ? undefined : Math.min(...found)
    },
    close() {
      isClosed = true
      clearInterval(timer)
      for (const sentinel of sentinels) sentinel.close()
      server.close()
    },
  }
}

const isSame = (one: RedisServer, other: RedisServer): boolean =>
  one.host === other.host && one.port === other.port

/** Parses the reply to `SENTINEL MASTER`: names and values in turn. */
function viewIn(reply: unknown): View {
  if (!Array.isArray(reply)) throw new Error('the Sentinel does not watch the master')
  const field = (name: string) => String(reply[reply.indexOf(name) + 1])
  const downAfterMs = Number(field('down-after-milliseconds'))
  return {
    server: { host: field('ip'), port: Number(field('port')) },
    flags: field('flags').split(','),
    downAfterMs: Number.isFinite(downAfterMs) ? downAfterMs : Number.POSITIVE_INFINITY,
  }
}
