/**
 * Measures how soon open streams end, and what their checks cost, with 1,000 streams of 100 callers:
 * `node test/streams/measure.ts [Node|workerd] [streams] [maxStalenessMs]`. Every third stream is a WebSocket.
 * `recheckSeconds` is 2.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createBanList } from '../../src/access/abuse/redis/bans.ts'
import { ISSUER } from '../harness/issuer.ts'
import { RUNTIMES, type StreamGateway, startStreamGateway } from './gateway.ts'

const CALLERS = 100
const RECHECK_MS = 2_000
const INTERVALS = 5
const PATH = '/two/events'
const [name = 'Node', streamCount = '1000', staleness = '0'] = process.argv.slice(2)
/** Tokens that expire do so after everything else is measured. */
const EXPIRE_AFTER_SECONDS = 90 + Number(streamCount) / 100
const MIB = 1_048_576
const runtime = RUNTIMES.find((one) => one === name)
if (runtime === undefined) throw new TypeError(`unknown runtime ${name}`)

interface Measured {
  readonly caller: number
  /** Resolves to the time at which the client saw the end. */
  readonly ended: Promise<number>
}

async function open(gateway: StreamGateway, caller: number, token: string, index: number) {
  if (index % 3 !== 0) {
    const { ended } = await gateway.open(PATH, token)
    return { caller, ended }
  }
  const { closed } = await gateway.openSocket(PATH, token)
  return { caller, ended: closed.then(({ atMs }) => atMs) }
}

/** Prints the time from `sinceMs` until the streams have ended. */
async function report(what: string, streams: readonly Measured[], sinceMs: number): Promise<void> {
  const times = (await Promise.all(streams.map(({ ended }) => ended))).map((at) => at - sinceMs)
  times.sort((one, other) => one - other)
  const [median, max] = [times[times.length >> 1] ?? 0, times.at(-1) ?? 0]
  console.error(`${what}: ${times.length} streams, median ${median} ms, maximum ${max} ms`)
}

/** Returns the resident memory of this process: on Node, clients, gateway and origin. */
function residentMib(): number {
  globalThis.gc?.()
  return Math.round(process.memoryUsage.rss() / MIB)
}

const gateway = await startStreamGateway(runtime, Number(staleness))
const expMs = (Math.floor(Date.now() / 1_000) + EXPIRE_AFTER_SECONDS) * 1_000
const callers = Array.from({ length: CALLERS }, (_, caller) => caller)
const streams: Measured[] = []
;(await gateway.open('/files/short', await gateway.token())).leave()
const emptyMib = residentMib()
const startedMs = Date.now()
for (let first = 0; first < Number(streamCount); first += CALLERS) {
  const opened = callers.map(async (caller) => {
    // Each stream has a token of its own.
    const claims = { sub: `caller-${caller}`, ...(caller % 3 === 2 && { exp: expMs / 1_000 }) }
    return open(gateway, caller, await gateway.token(claims), first / CALLERS + caller)
  })
  streams.push(...(await Promise.all(opened)))
}
console.error(`opened in ${Date.now() - startedMs} ms`)
await sleep(RECHECK_MS)
console.error(`resident memory of this process: ${emptyMib} MiB, then ${residentMib()} MiB`)
const before = gateway.redis.decisions()
await sleep(RECHECK_MS * INTERVALS)
const calls = (gateway.redis.decisions() - before) / INTERVALS
console.error(
  `${runtime}: ${streams.length} streams of ${CALLERS} callers: ${calls} calls to Redis in 2 s`,
)

const of = (rest: number) => streams.filter(({ caller }) => caller % 3 === rest)
await Promise.all(
  callers
    .filter((caller) => caller % 3 === 0)
    .map((caller) =>
      gateway.revocations.revokeBefore({
        kind: 'subject',
        issuer: ISSUER,
        value: `caller-${caller}`,
        atSeconds: Date.now() / 1_000,
        ttlSeconds: 600,
      }),
    ),
)
await report('after a revocation', of(0), Date.now())
const bans = createBanList(gateway.rest, Date.now)
await Promise.all(
  callers
    .filter((caller) => caller % 3 === 1)
    .map((caller) =>
      bans.create({
        kind: 'subject',
        value: `caller-${caller}`,
        issuer: ISSUER,
        issuers: [ISSUER],
        createdBy: 'olga',
        seconds: 600,
      }),
    ),
)
await report('after a ban', of(1), Date.now())
await report('after the expiry', of(2), expMs)
await gateway.close()
process.exit(0)
