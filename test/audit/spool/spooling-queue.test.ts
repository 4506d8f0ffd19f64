import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { spoolingQueue } from '../../../src/runtimes/node/audit/spool/spooling-queue.ts'

type Mood = 'works' | 'refuses' | 'hangs' | 'is slow'

function set() {
  const state = { mood: 'works' as Mood, disk: 'works' as 'works' | 'full', nowMs: 1_000_000 }
  const queued: string[][] = []
  const spooled: string[][] = []
  let attempts = 0
  const late: (() => void)[] = []
  const queue = spoolingQueue({
    queue: {
      async sendBatch(messages) {
        attempts += 1
        const bodies = messages.map(({ body }) => body)
        if (state.mood === 'refuses') throw new Error('the stream is full')
        if (state.mood === 'hangs') await new Promise(() => {})
        if (state.mood === 'is slow') await new Promise<void>((resolve) => late.push(resolve))
        queued.push(bodies)
      },
    },
    async spool(events) {
      if (state.disk === 'full') throw new Error('the disk is full')
      spooled.push([...events])
    },
    now: () => state.nowMs,
  })
  const send = (...events: string[]) =>
    queue.sendBatch(events.map((body) => ({ body, contentType: 'text' })))
  return { state, queued, spooled, late, send, attempts: () => attempts }
}

test('a queue that works gets each batch, and the spool none', async () => {
  const { send, queued, spooled } = set()
  await send('a', 'b')
  await send('c')
  expect(queued).toEqual([['a', 'b'], ['c']])
  expect(spooled).toEqual([])
})

test.each<Mood>(['refuses', 'hangs'])(
  'a queue that %s: each batch is in the spool',
  async (mood) => {
    const { send, queued, spooled, state, attempts } = set()
    state.mood = mood
    await send('a')
    await send('b')
    expect(spooled).toEqual([['a'], ['b']])
    expect(queued).toEqual([])
    // The second batch did not wait for the queue.
    expect(attempts()).toBe(1)
  },
)

test('one batch a second probes the queue, and after its success all go to the queue', async () => {
  const { send, queued, spooled, state, attempts } = set()
  state.mood = 'refuses'
  await send('a')
  state.nowMs += 1_000
  await Promise.all([send('b'), send('c'), send('d')])
  expect(attempts()).toBe(2)
  expect(spooled.flat().toSorted()).toEqual(['a', 'b', 'c', 'd'])
  state.mood = 'works'
  state.nowMs += 1_000
  await send('e')
  await Promise.all([send('f'), send('g')])
  expect(queued.flat()).toEqual(['e', 'f', 'g'])
  expect(spooled).toHaveLength(4)
})

test('a slow queue does not work: its late success does not send further batches to it', async () => {
  const { send, queued, spooled, state, late } = set()
  state.mood = 'is slow'
  await send('a')
  for (const finish of late) finish()
  await sleep(0)
  await send('b')
  expect(queued).toEqual([['a']])
  expect(spooled).toEqual([['a'], ['b']])
})

test('with a full disk, the queue decides', async () => {
  const { send, queued, state, late } = set()
  state.disk = 'full'
  state.mood = 'refuses'
  await expect(send('a')).rejects.toThrow('the stream is full')
  await expect(send('b')).rejects.toThrow('the stream is full')
  state.mood = 'is slow'
  state.nowMs += 1_000
  const sent = send('c')
  while (late.length === 0) await sleep(1)
  for (const finish of late) finish()
  await sent
  state.mood = 'works'
  // Within the second after the failure.
  await send('d')
  expect(queued.flat()).toEqual(['c', 'd'])
})
