/** The thread of the trail with a spool, over a Redis that is killed and started again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { MAX_PENDING_BYTES } from '../../../src/audit/batch.ts'
import { createAuditQueue } from '../../../src/audit/queue/audit-queue.ts'
import { newAuditTally } from '../../../src/isolate/tally.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { awaitedAuditSink } from '../../../src/runtimes/node/audit/sink.ts'
import { createAuditTrail } from '../../../src/runtimes/node/audit/trail.ts'
import { connectResp } from '../../../src/runtimes/node/redis/resp.ts'
import { directTo, hasRedisServer, startRealServer } from '../../harness/resp-server.ts'
import { anEvent } from '../event.ts'

const WAVES = 60
const WAVE = 400

test.skipIf(!hasRedisServer)(
  'an outage with several times more events than memory may have loses none, and keeps their order [R38]',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-spool-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const redis = await startRealServer([])
    onTestFinished(() => redis.close())
    const url = `redis://127.0.0.1:${redis.port}`
    const trail = createAuditTrail({ REDIS_URL: url, AUDIT_STREAM: 'redis', AUDIT_SPOOL: folder })
    await trail.open()
    trail.start()
    onTestFinished(() => trail.close())
    const resp = connectResp({ url })
    onTestFinished(() => resp.close())
    trail.connect(resp.connect({ timeoutMs: 2_000 }))
    const queue = trail.bindings.AUDIT_QUEUE
    if (queue === undefined) throw new Error('the trail has no queue')
    const tally = newAuditTally()
    const sink = awaitedAuditSink({ transport: createAuditQueue({ queue, tally }) })
    await redis.close()

    const ids: string[] = []
    let bytes = 0
    for (let wave = 0; wave < WAVES; wave += 1) {
      const work: Promise<unknown>[] = []
      for (let count = 0; count < WAVE; count += 1) {
        const event = { ...anEvent(), reason: `token_rejected:${'x'.repeat(600)}` }
        ids.push(event.id)
        bytes += JSON.stringify(event).length
        sink.record(event, (sent) => work.push(sent))
      }
      await Promise.all(work)
    }
    expect(bytes).toBeGreaterThan(2 * MAX_PENDING_BYTES)
    expect(tally).toEqual({ sent: ids.length, spilled: 0, lost: 0 })
    expect(trail.spooled()).toBe(ids.length)

    const again = await startRealServer([], redis.port)
    onTestFinished(() => again.close())
    const direct = directTo(again.port)
    onTestFinished(() => direct.disconnect())
    const stream = DEFAULT_KEYS.auditStream
    await expect.poll(() => direct.xlen(stream)).toBe(ids.length)
    const entries = await direct.xrange(stream, '-', '+')
    const arrived = entries.map(([, [, event]]): string => JSON.parse(event ?? '').id)
    // Within a wave, a batch that probes Redis is overtaken.
    const isInOrder = Array.from({ length: WAVES }, (_, wave) => {
      const inWave = (all: readonly string[]) => all.slice(wave * WAVE, (wave + 1) * WAVE)
      return inWave(arrived).toSorted().join() === inWave(ids).toSorted().join()
    })
    expect(isInOrder).toEqual(Array(WAVES).fill(true))
  },
)
