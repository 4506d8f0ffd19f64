/** The fence with a clock of the test: when a master is believed. */
import { expect, test } from 'vitest'
import { createFence, SilentMaster } from '../../../src/runtimes/node/redis/fence/fence.ts'

const SETTLE_MS = 150
const FENCE_MS = 800

/** A fence around a master that answers at once, at times that the test sets. */
function createWorld() {
  let nowMs = 10_000
  const steps: string[] = []
  const world = {
    steps,
    pass: (ms: number) => {
      nowMs += ms
    },
    now: () => nowMs,
    ping: async (): Promise<void> => void steps.push('ping'),
    confirm: async (): Promise<void> => void steps.push('confirm'),
  }
  const fence = createFence({
    fenceMs: FENCE_MS,
    ping: () => world.ping(),
    confirm: () => world.confirm(),
    now: world.now,
    sleep: async (ms) => {
      steps.push(`sleep ${ms}`)
      nowMs += ms
    },
  })
  return { world, fence }
}

test('a new master is believed after a reply, the word of another node, and a second reply', async () => {
  const { world, fence } = createWorld()
  expect(fence.isOpen()).toBe(false)
  expect(fence.heard(world.now())).toBe(false)
  await Promise.all([fence.proved(), fence.proved()])
  expect(world.steps).toEqual(['ping', `sleep ${SETTLE_MS}`, 'confirm', 'ping'])
  expect(fence.isOpen()).toBe(true)
})

test('a reply counts if a command of the last 800 ms was answered, whenever its own was sent', async () => {
  const { world, fence } = createWorld()
  await fence.proved()
  world.pass(FENCE_MS)
  const sentMs = world.now()
  expect(fence.heard(sentMs)).toBe(true)
  // An answered command that was sent earlier proves nothing newer.
  expect(fence.heard(sentMs - 500)).toBe(true)
  world.pass(FENCE_MS)
  expect(fence.heard(world.now())).toBe(true)
  world.pass(FENCE_MS + 1)
  expect(fence.heard(world.now())).toBe(false)
  expect(fence.heard(world.now())).toBe(false)
  expect(fence.closings()).toBe(1)
})

test('a reply that waited in a buffer while the process stood still does not prove life', async () => {
  const { world, fence } = createWorld()
  await fence.proved()
  const sentMs = world.now()
  world.pass(700)
  expect(fence.heard(sentMs)).toBe(true)
  // The master may have stopped just after `sentMs`.
  world.pass(101)
  expect(fence.heard(world.now())).toBe(false)
})

test('a master is not believed if another node names another one, or none answers [S94]', async () => {
  const { world, fence } = createWorld()
  world.confirm = () => Promise.reject(new Error('another one'))
  await expect(fence.proved()).rejects.toThrow('another one')
  world.confirm = async () => {}
  world.ping = () => Promise.reject(new Error('no reply'))
  await expect(fence.proved()).rejects.toThrow('no reply')
  expect(fence.isOpen()).toBe(false)
})

test('a proof with a silence inside, or during which the socket was lost, is void', async () => {
  const { world, fence } = createWorld()
  world.confirm = async () => world.pass(FENCE_MS)
  await expect(fence.proved()).rejects.toThrow(SilentMaster)
  world.confirm = async () => fence.close()
  await expect(fence.proved()).rejects.toThrow(SilentMaster)
  world.confirm = async () => {}
  await fence.proved()
  expect(fence.isOpen()).toBe(true)
  fence.close()
  expect(fence.heard(world.now())).toBe(false)
})
