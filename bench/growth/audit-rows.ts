/** Stored audit events: what an event costs beside so many others. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expectAnswer, orders, read } from '../load/questions.ts'
import { oursDurable, oursWith, startOnNode } from '../node/contestants.ts'
import { openRedis, type RedisMeter } from '../node/costs.ts'
import { contestantOf } from './policies.ts'
import type { Stage, Subject } from './table.ts'

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const SUBJECTS = 20_000
/** Events of one call to Redis, and events that may wait for the gateway. */
const OF_CALL = 500
const WAITING = 50_000
const PAUSE_MS = 100
const CAPTURE_TRIES = 100

interface Captured {
  readonly stream: string
  readonly fields: readonly string[]
}

/** Returns the event of one request as a gateway without a database sends it. */
async function capture(stage: Stage, { direct }: RedisMeter, prefix: string): Promise<Captured> {
  const gateway = oursWith('events', 1, { AUDIT_STREAM: 'redis', REDIS_PREFIX: prefix })
  const { url, close } = await startOnNode(stage, gateway, stage)
  await expectAnswer(url, read(stage.tokens.writers[0] ?? ''), gateway.title)
  for (let tries = 0; tries < CAPTURE_TRIES; tries++) {
    const [, streams] = await direct.scan(
      0,
      'MATCH',
      `${prefix}*`,
      'COUNT',
      10_000,
      'TYPE',
      'stream',
    )
    const [stream] = streams
    const [entry] = stream === undefined ? [] : await direct.xrange(stream, '-', '+', 'COUNT', 1)
    if (stream !== undefined && entry !== undefined) {
      await close()
      return { stream, fields: entry[1] }
    }
    await sleep(PAUSE_MS)
  }
  throw new Error('the event of a request did not reach the stream')
}

/** Returns the event of another request by another caller. */
function copyOf(field: string, number: number): string {
  const ids = new Map<string, string>()
  return field
    .replace(UUID, (id) => ids.get(id) ?? (ids.set(id, randomUUID()).get(id) as string))
    .replace('caller-0', `caller-${number % SUBJECTS}`)
}

/** Sends copies of an event to its stream, never so many that the gateway would drop new ones. */
async function fill({ direct }: RedisMeter, { stream, fields }: Captured, count: number) {
  for (let sent = 0; sent < count; ) {
    while ((await direct.xlen(stream)) > WAITING) await sleep(PAUSE_MS)
    const pipeline = direct.pipeline()
    for (const end = Math.min(count, sent + OF_CALL); sent < end; sent++)
      pipeline.xadd(stream, '*', ...fields.map((field) => copyOf(field, sent)))
    await pipeline.exec()
  }
}

export const auditRows: Subject = {
  id: 'audit-rows',
  title: 'stored audit events',
  sizes: [10_000, 100_000, 1_000_000, 5_000_000],
  async start(stage, size) {
    const { ground, onProgress, shutdown, connections, tokens } = stage
    const redis = await openRedis(ground.backends.redis.directUrl)
    shutdown.defer(async () => redis.close())
    const prefix = `pc-rows-${size}:`
    const captured = await capture(stage, redis, prefix)
    const durable = {
      ...oursDurable,
      id: `audit-rows-${size}`,
      variables: (directory: string) => ({
        ...oursDurable.variables(directory),
        REDIS_PREFIX: prefix,
      }),
    }
    const started = await startOnNode(stage, durable, stage)
    onProgress(`storing ${size.toLocaleString('en')} events`)
    await fill(redis, captured, size)
    await redis.untilDrained()
    return {
      ...contestantOf(started, orders('read', tokens.writers), connections),
      settled: redis.untilDrained,
    }
  },
}
