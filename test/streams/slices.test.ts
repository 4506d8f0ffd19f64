/** How a process with many open streams checks their callers. */
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Principal } from '../../src/access/principal.ts'
import { Denied, Unavailable } from '../../src/errors.ts'
import { createOpenStreams, type StreamCaller } from '../../src/streams/open-streams.ts'

const CALLERS = 1_100
const BROKEN = 700
const terms = { recheckMs: 200, graceMs: 300, finishes: false }

const principalOf = (subject: string) =>
  ({ subject, expiresAtSeconds: Number.MAX_SAFE_INTEGER }) as Principal

/** Opens a stream of each caller. Returns the numbers of those that were ended. */
function openStreams(
  options: Pick<Parameters<typeof createOpenStreams>[0], 'recheck'>,
  count: number,
  checkOf?: (index: number) => () => Promise<void>,
) {
  const streams = createOpenStreams({ ...options, now: Date.now, isShared: true })
  const ended: number[] = []
  const opened = Array.from({ length: count }, (_, index) => {
    const check = checkOf?.(index)
    const stream = streams.add({
      principal: principalOf(String(index)),
      address: '192.0.2.1',
      terms,
      readmit: check && { relation: `order:${index}`, check },
      onEnd: () => void ended.push(index),
    })
    stream.opened({ cut() {} })
    return stream
  })
  return { ended, close: () => opened.map((stream) => stream.closed()) }
}

test('a call that fails ends only the streams of its own callers', async () => {
  const sizes = new Set<number>()
  const recheck = async (callers: readonly StreamCaller[]) => {
    sizes.add(callers.length)
    if (callers.some(({ principal }) => principal.subject === String(BROKEN)))
      throw new Unavailable('redis', 'timeout')
    return callers.map(() => undefined)
  }
  const { ended, close } = openStreams({ recheck }, CALLERS)
  await expect.poll(() => ended.length).toBe(500)
  close()
  expect(Math.min(...ended)).toBe(500)
  expect(Math.max(...ended)).toBe(999)
  expect(Math.max(...sizes)).toBe(500)
})

test('at most 16 relations are checked at once', async () => {
  let running = 0
  let most = 0
  const checked = new Set<number>()
  const checkOf = (index: number) => async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setTimeout(resolve, 1))
    running -= 1
    checked.add(index)
  }
  const { ended, close } = openStreams({ recheck: async () => [] }, 200, checkOf)
  await expect.poll(() => checked.size).toBe(200)
  close()
  expect(most).toBe(16)
  expect(ended).toEqual([])
})

test('a stream that nothing ends leaves the others of its process as they are', async () => {
  const streams = createOpenStreams({ recheck: async () => [], now: Date.now, isShared: true })
  const ended: string[] = []
  const open = (subject: string, expiresAtSeconds: number, recheckMs = 0) => {
    const stream = streams.add({
      principal: { ...principalOf(subject), expiresAtSeconds } as Principal,
      address: '192.0.2.1',
      terms: { ...terms, recheckMs },
      onEnd: () => void ended.push(subject),
    })
    stream.opened({ cut() {} })
    return stream
  }
  const soon = Math.floor(Date.now() / 1_000) + 1
  open('first', soon)
  const endless = open('endless', Number.POSITIVE_INFINITY)
  open('second', soon)
  open('closed', soon).closed()
  open('third', soon)
  endless.closed()
  await expect
    .poll(() => ended.toSorted(), { timeout: 5_000 })
    .toEqual(['first', 'second', 'third'])
})

test('a download that may finish has five seconds for its first byte, as for each later one', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const refused = { code: 'token_revoked', by: 'subject' } as const
  const streams = createOpenStreams({
    recheck: async (all) => all.map(() => refused),
    now: Date.now,
  })
  let bytes = 0
  const ended: number[] = []
  const startMs = Date.now()
  const stream = streams.add({
    principal: principalOf('slow'),
    address: '192.0.2.1',
    terms: { ...terms, finishes: true },
    onEnd: (error) => ended.push(error instanceof Denied ? Date.now() - startMs : -1),
  })
  stream.opened({ cut() {}, bytes: () => bytes })
  await vi.advanceTimersByTimeAsync(4_000)
  expect(ended).toEqual([])
  bytes = 1
  await vi.advanceTimersByTimeAsync(5_000)
  expect(ended).toEqual([])
  await vi.advanceTimersByTimeAsync(5_000)
  expect(ended).toHaveLength(1)
})
