/** Calls that a master does not get, or does not answer: metrics count each of them, and circuit breakers the right ones. */
import { afterEach, describe, expect, test } from 'vitest'
import type { SendOptions } from '../../../src/redis/connection.ts'
import { clusterCalls } from '../../../src/runtimes/node/redis/cluster/calls.ts'
import { createClusterRouter } from '../../../src/runtimes/node/redis/cluster/router.ts'
import { createFencedServer } from '../../../src/runtimes/node/redis/fence/fenced-server.ts'
import { freePort } from '../../harness/process.ts'
import { bulk, type StubServer, startStubServer } from '../../harness/resp-server.ts'

const targetAt = (port: number) => ({
  ...{ servers: [{ host: '127.0.0.1', port }], master: undefined, lanes: undefined, tls: false },
  ...{ database: 0, username: undefined, password: undefined },
  sentinelLogin: { username: undefined, password: undefined },
})

test('a call to a server whose proof fails is counted', async () => {
  const server = createFencedServer({
    target: targetAt(await freePort()),
    ...{ silenceMs: 2_000, fenceMs: 800 },
    confirm: async () => {},
  })
  for (const send of [server.send, server.write])
    await expect(send([['GET', 'k']], { isExpired: false })).rejects.toThrow()
  expect(server.state()).toMatchObject({ answered: 0, failed: 0, doubted: 2 })
  server.close()
})

test('a call to a master of a cluster that cannot be verified is counted, also after its deadline', async () => {
  const unused = createClusterRouter({ target: targetAt(1), silenceMs: 1, fenceMs: 1 })
  const node = unused.nodeAt({ host: '127.0.0.1', port: 1 })
  const verifying = Promise.withResolvers<void>()
  let verified: Promise<void> = Promise.reject(new Error('the master has lost its keys'))
  const router = {
    ...{ ...unused, ownerOf: () => node, isVerified: () => false, verified: () => verified },
    suspect() {},
  }
  const target = { slot: 1, prefix: 'pc:{a}:', isWriter: false }
  const send = clusterCalls(router, { timeoutMs: 20 })(target)
  await expect(send([['GET', 'pc:{a}:k']])).rejects.toThrow()
  expect(node.state()).toMatchObject({ failed: 0, doubted: 1 })
  verified = verifying.promise
  await expect(send([['GET', 'pc:{a}:k']])).rejects.toThrow()
  verifying.resolve()
  await expect.poll(() => node.state().doubted).toBe(2)
  expect(node.state()).toMatchObject({ answered: 0, failed: 0 })
})

describe('a master that was just found, and that fails', () => {
  const slot = 1
  const NODE = bulk('redis_version:7.2.0\r\nrole:master\r\ncluster_enabled:1\r\n')
  const ended: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ended.splice(0)) await end()
  })

  /** A server that answers `PING`, and every other command by `reply`. Undefined: it closes the connection. */
  async function nodeThat(reply: () => string | undefined): Promise<StubServer> {
    const server = await startStubServer((socket, text) => {
      const answers = [...text.matchAll(/\$\d+\r\n(PING|INCR|DECR)\r\n/g)].map(([, name]) =>
        name === 'PING' ? '+PONG\r\n' : reply(),
      )
      if (answers.includes(undefined)) socket.destroy()
      else socket.write(answers.join(''))
    }, NODE)
    ended.push(server.close)
    return server
  }

  /** Two nodes, of which the first owns the slot as far as the router knows, and calls whose circuit breakers write down what they count. */
  async function start({ isKnown }: { readonly isKnown: boolean }) {
    const state = { first: (): string | undefined => ':1\r\n', isKnown: true }
    const second = await nodeThat(() => undefined)
    const first = await nodeThat(() => state.first())
    const router = createClusterRouter({
      target: targetAt(first.port),
      ...{ silenceMs: 5_000, fenceMs: Number.POSITIVE_INFINITY },
    })
    ended.push(router.close)
    const at = ({ port }: StubServer) => router.nodeAt({ host: '127.0.0.1', port })
    await Promise.all([first, second].map((server) => at(server).proved()))
    const noted: string[] = []
    const names = new Map([
      [at(first).address, 'first'],
      [at(second).address, 'second'],
    ])
    const breakerOf = (address: string) => ({
      enter: () => 0,
      succeeded: () => void noted.push(`${names.get(address) ?? address} answered`),
      failed: () => void noted.push(`${names.get(address) ?? address} failed`),
    })
    const routing = {
      ...router,
      ownerOf: () => (state.isKnown ? at(first) : undefined),
      find: async () => at(first),
      isVerified: () => true,
      suspect() {},
    }
    const calls = clusterCalls(routing, {
      ...{ timeoutMs: 5_000, breaker: breakerOf('search'), breakerOf },
      onCall: (outcome) => void noted.push(outcome),
    })
    const send = calls({ slot, prefix: 'pc:{a}:', isWriter: false })
    const over: NonNullable<SendOptions['over']> = {}
    expect(await send([['INCR', 'pc:{a}:k']], { over })).toEqual([{ result: 1 }])
    noted.length = 0
    state.isKnown = isKnown
    const ofDecr = ({ received }: StubServer) => received.join('').split('DECR').length - 1
    return {
      ...{ state, noted, first: at(first), moved: `-MOVED ${slot} 127.0.0.1:${second.port}\r\n` },
      refund: () => send([['DECR', 'pc:{a}:k']], { once: true, over }),
      command: () => send([['DECR', 'pc:{a}:k']]),
      sent: () => [ofDecr(first), ofDecr(second)],
    }
  }
  type Started = Awaited<ReturnType<typeof start>>
  const closes = ({ state }: Started) => {
    state.first = () => undefined
  }
  const sendsOn = ({ state, moved }: Started) => {
    state.first = () => moved
  }
  const isLost = ({ first }: Started) => first.reset(new Error('the socket was lost'))
  const found = 'search answered'

  interface Case {
    readonly call: 'command' | 'refund'
    readonly master: string
    readonly fails: (started: Started) => void
    /** What counts, in addition to a search if the owner is not known. */
    readonly counts: readonly string[]
    /** How often each node gets the command. */
    readonly sent: readonly number[]
  }
  const closed = { master: 'closes the connection', fails: closes, sent: [1, 0] } as const
  const cases: readonly Case[] = [
    { ...closed, call: 'command', counts: ['first failed', 'unreachable'] },
    {
      ...{ call: 'command', master: 'names another one that fails', fails: sendsOn },
      ...{ counts: ['first answered', 'second failed', 'unreachable'], sent: [1, 1] },
    },
    { ...closed, call: 'refund', counts: [] },
    { call: 'refund', master: 'lost its socket', fails: isLost, counts: [], sent: [0, 0] },
  ]
  const rows = cases.flatMap((each) => [true, false].map((isKnown) => ({ ...each, isKnown })))

  test.each(rows)(
    'a $call whose master $master, counts against no other one (known before: $isKnown)',
    async ({ call, fails, counts, sent, isKnown }) => {
      const started = await start({ isKnown })
      fails(started)
      await expect(started[call]()).rejects.toMatchObject({ fault: 'unreachable' })
      expect(started.noted).toEqual([...(isKnown ? [] : [found]), ...counts])
      expect(started.sent()).toEqual(sent)
    },
  )

  test.each([true, false])(
    'a refund reaches the master of its take (its owner is known: %s), and is sent on to no other',
    async (isKnown) => {
      const started = await start({ isKnown })
      expect(await started.refund()).toEqual([{ result: 1 }])
      expect(started.noted).toEqual(isKnown ? [] : [found])
      sendsOn(started)
      expect(await started.refund()).toEqual([{ error: expect.stringContaining('MOVED') }])
      expect(started.noted).toEqual(isKnown ? [] : [found, found])
      expect(started.sent()).toEqual([2, 0])
    },
  )
})
