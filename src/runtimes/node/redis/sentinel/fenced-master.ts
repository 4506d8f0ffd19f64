/** The master behind Sentinels, and its fence: a paused master that was replaced must not be believed. */
import type { RedisTarget } from '../../schemas/redis-url.ts'
import { createFencedServer, type FencedServer, tickMsOf } from '../fence/fenced-server.ts'
import { createRespSocket } from '../socket/resp-socket.ts'

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
  readonly address: string
  readonly flags: readonly string[]
  readonly downAfterMs: number
}

/** The master is about to be replaced. */
const IN_DOUBT = ['s_down', 'o_down', 'failover_in_progress', 'force_failover']
const NEVER_EXPIRES = { isExpired: false }

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
      { accept: () => {} },
    ),
  )
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let first: string | undefined

  async function views(): Promise<readonly View[]> {
    const replies = await Promise.allSettled(
      sentinels.map((sentinel) =>
        sentinel.send([['SENTINEL', 'MASTER', target.master ?? '']], NEVER_EXPIRES),
      ),
    )
    return replies.flatMap((reply) =>
      reply.status === 'fulfilled' ? viewIn(reply.value[0]?.result) : [],
    )
  }

  /** Returns the address of the master if all Sentinels that answer agree, and none doubts it. */
  async function agreed(): Promise<string> {
    const [one, ...others] = await views()
    if (one === undefined) throw new Error('no Sentinel answers')
    const all = [one, ...others]
    if (all.some(({ address }) => address !== one.address))
      throw new Error('the Sentinels name different masters')
    if (all.some(({ flags }) => IN_DOUBT.some((flag) => flags.includes(flag))))
      throw new Error('a Sentinel doubts the master')
    return one.address
  }

  const server = createFencedServer({
    target,
    silenceMs,
    fenceMs,
    // The sockets that open next are those of the master that the Sentinels name between two answers.
    async prepare(server) {
      server.reset(new Error('the master must be found anew'))
      first = await agreed()
    },
    async confirm() {
      if ((await agreed()) !== first) throw new Error('the Sentinels name another master')
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

/** Parses the reply to `SENTINEL MASTER`: names and values in turn. */
function viewIn(reply: unknown): View[] {
  if (!Array.isArray(reply)) return []
  const field = (name: string) => String(reply[reply.indexOf(name) + 1])
  const downAfterMs = Number(field('down-after-milliseconds'))
  return [
    {
      address: `${field('ip')}:${field('port')}`,
      flags: field('flags').split(','),
      downAfterMs: Number.isFinite(downAfterMs) ? downAfterMs : Number.POSITIVE_INFINITY,
    },
  ]
}
