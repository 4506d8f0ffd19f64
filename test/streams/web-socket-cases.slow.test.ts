/** A WebSocket through the gateway carries and refuses what it does without one, on both runtimes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RUNTIMES, type StreamGateway, startStreamGateway } from './gateway.ts'
import { CASES, OF_PLATFORM } from './web-socket-cases.ts'
import { converse } from './web-socket-client.ts'

describe.each(RUNTIMES)('on %s', (runtime) => {
  let gateway: StreamGateway
  let token: string
  beforeAll(async () => {
    gateway = await startStreamGateway(runtime)
    token = await gateway.token()
  })
  afterAll(() => gateway?.close())

  test.each(CASES.map(({ name, frames }) => [name, frames] as const))(
    '%s',
    async (name, frames) => {
      const [direct, through] = await Promise.all([
        converse(`${gateway.origin.url}/events`, {}, frames),
        converse(`${gateway.url}/events`, { Authorization: `Bearer ${token}` }, frames),
      ])
      // Each conversation has ended, with the close frame of a server or without.
      if (runtime === 'workerd' && OF_PLATFORM.test(name)) return
      expect(through).toEqual(direct)
    },
  )
})
