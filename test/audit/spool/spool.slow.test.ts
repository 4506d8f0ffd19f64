/** What the spool sends, to a queue that records what arrives. The file and its lock are real. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openSpool } from '../../../src/runtimes/node/audit/spool/spool.ts'

const DAY_MS = 86_400_000

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portcullis-spool-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
})

/** A process with the directory, and a queue that accepts `room` batches. */
function started({ room = Number.POSITIVE_INFINITY, hold = Promise.resolve() } = {}) {
  const state = { nowMs: Date.now(), room }
  const sent: string[][] = []
  let [connections, calls] = [0, 0]
  const spool = openSpool({
    directory,
    maxBytes: 4 * 1_048_576,
    connect() {
      connections += 1
      return {
        queue: {
          async sendBatch(messages) {
            calls += 1
            await hold
            if (state.room === 0) throw new Error('Redis is down')
            state.room -= 1
            sent.push(messages.map(({ body }) => body))
          },
        },
        close() {
          connections -= 1
        },
      }
    },
    now: () => state.nowMs,
  })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= spool.close()
    return closed
  }
  onTestFinished(close)
  return { spool, state, sent, close, connections: () => connections, calls: () => calls }
}

const texts = (count: number) => Array.from({ length: count }, (_, at) => `event ${at}`)

describe('the sender', () => {
  beforeEach(() => {
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
  })

  test('sends nothing before the start, then pages of 100, and closes its connection', async () => {
    const { spool, sent, calls, connections } = started()
    await Promise.all([spool.append(texts(250)), spool.append(['last'])])
    expect(calls()).toBe(0)
    spool.start()
    await expect.poll(() => sent.map(({ length }) => length)).toEqual([100, 100, 51])
    expect(sent.flat()).toEqual([...texts(250), 'last'])
    await expect.poll(connections).toBe(0)
  })

  test('continues after a failure with the page that was not accepted', async () => {
    const { spool, state, sent, calls } = started({ room: 2 })
    await spool.append(texts(350))
    spool.start()
    await expect.poll(calls).toBeGreaterThan(3)
    expect(sent).toHaveLength(2)
    state.room = Number.POSITIVE_INFINITY
    await expect.poll(() => sent.flat()).toEqual(texts(350))
  })

  test('of two processes, the second sends only what the first has left', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const [first, second] = [started({ hold: promise, room: 1 }), started()]
    await first.spool.append(texts(150))
    first.spool.start()
    await expect.poll(first.calls).toBe(1)
    second.spool.start()
    const stored = second.spool.append(['later'])
    await stored
    // Closing makes an attempt, which finds the lock.
    await second.close()
    expect(second.calls()).toBe(0)
    resolve()
    const third = started()
    third.spool.start()
    await expect.poll(() => third.sent.flat()).toEqual([...texts(150).slice(100), 'later'])
    expect(first.sent.flat()).toEqual(texts(100))
  })

  test('does not send events of more than 7 days, and reports their number', async () => {
    const { spool, state, sent } = started()
    await spool.append(texts(3))
    state.nowMs += 7 * DAY_MS + 1
    await spool.append(['young'])
    spool.start()
    await expect.poll(() => sent.flat()).toHaveLength(2)
    const [young, report] = sent.flat()
    expect(young).toBe('young')
    expect(JSON.parse(report ?? '')).toMatchObject({ reason: 'audit_lost', lost: 3 })
  })

  test('tries once more at the end, and leaves the rest to the next process', async () => {
    const first = started({ room: 0 })
    first.spool.start()
    await first.spool.append(texts(120))
    first.state.room = 1
    await first.close()
    const second = started()
    second.spool.start()
    await expect.poll(() => [...first.sent, ...second.sent].flat()).toEqual(texts(120))
    expect(first.sent.flat()).toHaveLength(100)
  })

  test('a file that is no database refuses events, and the log names the directory once', async () => {
    writeFileSync(join(directory, 'events.db'), 'no database '.repeat(100))
    const { spool } = started()
    await expect(spool.append(['a'])).rejects.toThrow('not a database')
    await expect(spool.append(['b'])).rejects.toThrow('not a database')
    expect(vi.mocked(console.error).mock.calls).toEqual([
      [expect.stringMatching(`the spool ${directory} stores no events .*not a database`)],
    ])
  })
})
