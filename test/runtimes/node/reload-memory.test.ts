/** What policies that were replaced leave in the memory of a server. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test, vi } from 'vitest'
import { definePolicy } from '../../../src/index.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { startGateway } from '../../harness/gateway.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** In bytes. Some objects are released by tasks that run after a collection. */
async function usedHeap(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    await nextTurn()
    collect()
  }
  return process.memoryUsage().heapUsed
}

const policyOf = () =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [{ method: 'GET', path: '/open', anonymous: true }],
  })

test('50 policies that were replaced leave nothing', async () => {
  const log = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  onTestFinished(() => log.mockRestore())
  const parts = await startGateway()
  onTestFinished(() => parts.close())
  const env = parts.environment as Record<string, string>
  const server = await serve({ policy: policyOf(), port: 0, env, graceMs: 1_000 })
  onTestFinished(() => server.close())

  async function replace(times: number): Promise<number> {
    for (let count = 0; count < times; count += 1) {
      await server.reload(policyOf())
      await (await fetch(`${server.url}/open`)).text()
    }
    log.mockClear()
    return usedHeap()
  }
  const before = await replace(10)
  // A gateway takes more than 100 KB.
  expect((await replace(50)) - before).toBeLessThan(4_000_000)
})
