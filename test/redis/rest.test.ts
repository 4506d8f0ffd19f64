import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Redis } from '@upstash/redis/cloudflare'
import { afterEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../src/access/admission/admission.ts'
import type { LimitEngine } from '../../src/access/admission/limit.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import type { Principal } from '../../src/access/principal.ts'
import { Unavailable } from '../../src/errors.ts'
import { upstash } from '../../src/features/upstash/index.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { createRedisByFetch } from '../../src/redis/rest-by-fetch.ts'
import { HttpClient } from '../../src/redis/upstash-http.js'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

const TOKEN = 'a-token-that-must-not-appear-anywhere'
const alice: Principal = {
  issuer: 'https://issuer.test',
  tokenIssuer: 'https://issuer.test',
  subject: 'alice',
  client: undefined,
  tenant: undefined,
  session: undefined,
  roles: [],
  scopes: [],
  tokenId: 't',
  tokenIdHash: 'hash',
  confirmation: undefined,
  issuedAtSeconds: 1,
  expiresAtSeconds: 9_999_999_999,
}

const CLIENTS = [
  { name: '@upstash/redis', connect: createRedisRest },
  { name: 'fetch', connect: createRedisByFetch },
] as const

let server: TestServer
afterEach(() => server.close())

describe.each(CLIENTS)('$name', ({ connect }) => {
  /**
   * Sends a request to admission over an endpoint that answers with `respond`. Returns the outcome
   * and the number of calls.
   */
  async function admitOver(
    respond: (response: ServerResponse) => void,
    engine: LimitEngine = 'exact',
  ) {
    let calls = 0
    server = await startHttpServer((request, response) => {
      calls += 1
      request.resume()
      respond(response)
    })
    const rest = connect({ url: server.url, token: TOKEN, timeoutMs: 250 })
    const admission = createAdmission({ store: createRedisAdmissionStore(rest), now: Date.now })
    const limit = {
      rule: { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny', engine },
      key: 'k',
    } as const
    const outcome = await admission
      .admit({ principal: alice, address: '192.0.2.1', limits: [limit] })
      .catch((error: unknown) => error)
    return { outcome, calls }
  }

  const good = '{"result":[0,0,3,2,60000]}'
  /** Additional replies for the upstash engine: its counters, and the remaining units. */
  const others = ['{"result":[null,null]}', '{"result":[2,3]}'] as const

  describe('a faulty Redis endpoint', () => {
    test('the well-formed replies, from which the malformed ones derive, are accepted', async () => {
      const { outcome } = await admitOver((response) => response.end(`[${good}]`))
      expect(outcome).toMatchObject({ denial: undefined })
      await server.close()
      const both = `[{"result":[0,0]},${others}]`
      const { outcome: other } = await admitOver((response) => response.end(both), upstash())
      expect(other).toMatchObject({ denial: undefined })
    })

    test.each([
      ['a truncated object', '{"result":'],
      ['an empty object', '{}'],
      ['an empty list', '[]'],
      ['null', 'null'],
      ['an empty body', ''],
      ['HTML', '<html>nginx</html>'],
      ['a list that is too long', `[${good},${good}]`],
      ['a reply that is null', '[null]'],
      ['a reply without result', '[{}]'],
      ['an object as result', '[{"result":{}}]'],
      ['null as result', '[{"result":null}]'],
      ['nulls', '[{"result":[null,null,null,null,null]}]'],
      ['an error', '[{"error":"LOADING"}]'],
      ['both a result and an error', `[${good.slice(0, -1)},"error":"ERR"}]`],
    ])('%s is an outage, never a refusal [R06]', async (_, body) => {
      const { outcome } = await admitOver((response) => response.end(body))
      expect(outcome).toBeInstanceOf(Unavailable)
    })

    test.each([
      ['a list that is too short', others.slice(0, 1)],
      ['a list that is too long', [...others, others[1]]],
      ['null for the counters', ['{"result":null}', others[1]]],
      ['too few counters', ['{"result":[null]}', others[1]]],
      ['an error for the counters', ['{"error":"LOADING"}', others[1]]],
      ['null for a window', [others[0], '{"result":null}']],
      ['nulls in a window', [others[0], '{"result":[null,null]}']],
      ['null for the remaining units', [others[0], '{"result":[null,3]}']],
      ['more remaining units than the limit', [others[0], '{"result":[3,3]}']],
      ['fewer remaining units than a refusal', [others[0], '{"result":[-2,3]}']],
      ['a limit below zero', [others[0], '{"result":[1,-1]}']],
      ['an additional number in a window', [others[0], '{"result":[1,3,0]}']],
      ['text in a window', [others[0], '{"result":["9","9"]}']],
      ['an error for a window', [others[0], '{"error":"OOM command not allowed"}']],
      ['both a result and an error', [others[0], '{"result":[2,3],"error":"ERR"}']],
    ])('of the upstash engine, %s is an outage, never a refusal [R06]', async (_, replies) => {
      const body = `[{"result":[0,0]},${replies}]`
      const { outcome } = await admitOver((response) => response.end(body), upstash())
      expect(outcome).toBeInstanceOf(Unavailable)
    })

    test.each([
      [401, '{"error":"WRONGPASS invalid password"}'],
      [429, '{"error":"ERR max requests limit exceeded"}'],
      [500, '<html>oops</html>'],
      [200, '{"error":"READONLY"}'],
      [302, ''],
    ])(
      'status %i is an outage after at most two calls, and its error quotes nothing [R05]',
      async (status, body) => {
        const { outcome, calls } = await admitOver((response) => {
          response.writeHead(status, { location: 'http://127.0.0.1:1/' })
          response.end(body)
        })
        expect(outcome).toBeInstanceOf(Unavailable)
        expect(calls).toBeLessThanOrEqual(2)
        expect((outcome as Error).message).not.toMatch(/pc:|WRONGPASS|EVALSHA|html/)
        expect((outcome as Error).message).not.toContain(TOKEN)
      },
    )

    test('a reply that never arrives is a timeout, not null [R02]', async () => {
      const { outcome } = await admitOver(() => undefined)
      expect(outcome).toMatchObject({ dependency: 'redis', fault: 'timeout' })
    })

    test('a reply that never ends is a timeout [R02]', async () => {
      const { outcome } = await admitOver((response) => response.write('[{"result":'))
      expect(outcome).toMatchObject({ dependency: 'redis', fault: 'timeout' })
    })

    test('a connection that breaks is tried at most twice [R01]', async () => {
      const { outcome, calls } = await admitOver((response) => response.destroy())
      expect(outcome).toMatchObject({ dependency: 'redis', fault: 'unreachable' })
      expect(calls).toBeLessThanOrEqual(2)
    })
  })

  describe('while Redis is unreachable', () => {
    test.each(['allow', 'deny'] as const)(
      'an anonymous request follows onUnavailable of its limit (%s), and an authenticated one is never admitted',
      async (onUnavailable) => {
        server = await startHttpServer((_, response) => response.destroy())
        const rest = connect({ url: server.url, token: TOKEN })
        const admission = createAdmission({ store: createRedisAdmissionStore(rest), now: Date.now })
        const limits = [
          { rule: { name: 'ping', limit: 3, windowSeconds: 60, onUnavailable }, key: 'k' },
        ]
        const anonymous = admission.admit({ principal: null, address: 'unknown', limits })
        if (onUnavailable === 'deny') await expect(anonymous).rejects.toBeInstanceOf(Unavailable)
        else expect(await anonymous).toMatchObject({ denial: undefined, uncounted: ['ping'] })
        await expect(
          admission.admit({ principal: alice, address: 'unknown', limits }),
        ).rejects.toBeInstanceOf(Unavailable)
      },
    )
  })
})

describe('the client of guards', () => {
  interface Call {
    readonly path: string | undefined
    readonly authorization: string | undefined
    readonly sync: string | string[] | undefined
    readonly body: unknown
  }

  async function recording(respond: (response: ServerResponse, call: number) => void) {
    const calls: Call[] = []
    server = await startHttpServer(async (request, response) => {
      const { authorization, 'upstash-sync-token': sync } = request.headers
      const body = JSON.parse(await text(request))
      calls.push({ path: request.url, authorization, sync, body })
      respond(response, calls.length)
    })
    return { calls, client: createRedisByFetch({ url: `${server.url}/`, token: TOKEN }) }
  }

  test('sends all commands in one request, and the sync token of the reply before', async () => {
    const { calls, client } = await recording((response, call) => {
      response.setHeader('upstash-sync-token', `after-${call}`)
      response.end('[{"result":"PONG"},{"error":"ERR"}]')
    })
    const commands = [['PING'], ['GET']]
    expect(await client.send(commands)).toEqual([{ result: 'PONG' }, { error: 'ERR' }])
    await client.send(commands)
    const sent = { path: '/pipeline', authorization: `Bearer ${TOKEN}`, body: commands }
    expect(calls).toEqual([
      { ...sent, sync: '' },
      { ...sent, sync: 'after-1' },
    ])
  })

  test('sends a call that must not be repeated once, and another one twice', async () => {
    const { calls, client } = await recording((response) => response.destroy())
    await expect(client.send([['PING']], { once: true })).rejects.toBeInstanceOf(Unavailable)
    expect(calls).toHaveLength(1)
    await expect(client.send([['PING']])).rejects.toMatchObject({ fault: 'unreachable' })
    expect(calls).toHaveLength(3)
  })

  test('sends its token to no address that a redirect names', async () => {
    const other = await recording((response) => response.end('[{"result":"PONG"}]'))
    const target = server
    const { client } = await recording((response) => {
      response.writeHead(307, { location: `${target.url}/pipeline` })
      response.end('[]')
    })
    await expect(client.send([['PING']])).rejects.toMatchObject({ fault: 'refused' })
    expect(other.calls).toEqual([])
    await target.close()
  })
})

test('@upstash/redis: the HTTP client is that of the class Redis of the package', () => {
  class Exposed extends Redis {
    readonly http = this.client
  }
  expect(new Exposed({ url: 'https://redis.test', token: TOKEN }).http).toBeInstanceOf(HttpClient)
})
