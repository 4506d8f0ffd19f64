import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { createAdmission } from '../../src/admission/admission.ts'
import { Unavailable } from '../../src/errors.ts'
import { createUpstashAdmissionStore } from '../../src/stores/upstash/admission-store.ts'
import { createRedisRest } from '../../src/stores/upstash/rest.ts'
import type { Principal } from '../../src/tokens/principal.ts'
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

let server: TestServer
afterEach(() => server.close())

/** Asks an endpoint that answers as `respond` does; how often it was asked comes with the error. */
async function ask(respond: (response: ServerResponse) => void) {
  let calls = 0
  server = await startHttpServer((request, response) => {
    calls += 1
    request.resume()
    respond(response)
  })
  const rest = createRedisRest({ url: server.url, token: TOKEN, timeoutMs: 250 })
  const admission = createAdmission({ store: createUpstashAdmissionStore(rest), now: Date.now })
  const limit = {
    rule: { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny' },
    key: 'k',
  } as const
  const outcome = await admission
    .admit({ principal: alice, address: '192.0.2.1', limits: [limit] })
    .catch((error: unknown) => error)
  return { outcome, calls }
}

const good = ['{"result":[null,null,null,null,null,null]}', '{"result":0}', '{"result":[2,3]}']

describe('a Redis endpoint that misbehaves', () => {
  test('the reply that the malformed ones are made from is admitted', async () => {
    const { outcome } = await ask((response) => response.end(`[${good}]`))
    expect(outcome).toMatchObject({ denial: undefined })
  })

  test.each([
    ['a truncated object', '{"result":'],
    ['an empty object', '{}'],
    ['an empty list', '[]'],
    ['null', 'null'],
    ['an empty body', ''],
    ['HTML', '<html>nginx</html>'],
    ['a list that is too short', `[${good.slice(0, 2)}]`],
    ['a list that is too long', `[${[...good, good[1]]}]`],
    ['replies that are null', '[null,null,null]'],
    ['replies without result', '[{},{},{}]'],
    ['an object for a result', `[{"result":{}},${good.slice(1)}]`],
    ['null for the look-ups', `[{"result":null},${good.slice(1)}]`],
    ['numbers for the look-ups', `[{"result":[1,2,3,4,5,6]},${good.slice(1)}]`],
    ['too few look-ups', `[{"result":[null]},${good.slice(1)}]`],
    ['a look-up that disagrees with its count', `[${good[0]},{"result":1},${good[2]}]`],
    ['a count below zero', `[${good[0]},{"result":-1},${good[2]}]`],
    ['no count of look-ups', `[${good[0]},{"result":null},${good[2]}]`],
    ['an error for the look-ups', `[{"error":"LOADING"},${good.slice(1)}]`],
    ['null for a window', `[${good.slice(0, 2)},{"result":null}]`],
    ['nulls in a window', `[${good.slice(0, 2)},{"result":[null,null]}]`],
    ['null for what is left', `[${good.slice(0, 2)},{"result":[null,3]}]`],
    ['more left than there is', `[${good.slice(0, 2)},{"result":[3,3]}]`],
    ['less than nothing left', `[${good.slice(0, 2)},{"result":[-2,3]}]`],
    ['a limit below zero', `[${good.slice(0, 2)},{"result":[1,-1]}]`],
    ['a number too many in a window', `[${good.slice(0, 2)},{"result":[1,3,0]}]`],
    ['text in a window', `[${good.slice(0, 2)},{"result":["9","9"]}]`],
    ['an error for a window', `[${good.slice(0, 2)},{"error":"OOM command not allowed"}]`],
    ['result and error at once', `[${good.slice(0, 2)},{"result":[2,3],"error":"ERR"}]`],
  ])('R06: %s is an outage, never a "no"', async (_, body) => {
    const { outcome } = await ask((response) => response.end(body))
    expect(outcome).toBeInstanceOf(Unavailable)
  })

  test.each([
    [401, '{"error":"WRONGPASS invalid password"}'],
    [429, '{"error":"ERR max requests limit exceeded"}'],
    [500, '<html>oops</html>'],
    [200, '{"error":"READONLY"}'],
    [302, ''],
  ])(
    'R05: status %i is an outage, asked twice at most, and quotes nothing',
    async (status, body) => {
      const { outcome, calls } = await ask((response) => {
        response.writeHead(status, { location: 'http://127.0.0.1:1/' })
        response.end(body)
      })
      expect(outcome).toBeInstanceOf(Unavailable)
      expect(calls).toBeLessThanOrEqual(2)
      expect((outcome as Error).message).not.toMatch(/pc:|WRONGPASS|EVALSHA|html/)
      expect((outcome as Error).message).not.toContain(TOKEN)
    },
  )

  test('R02: a reply that never comes is a timeout, not null', async () => {
    const { outcome } = await ask(() => undefined)
    expect(outcome).toMatchObject({ dependency: 'redis', fault: 'timeout' })
  })

  test('R02: a reply that never ends is a timeout', async () => {
    const { outcome } = await ask((response) => response.write('[{"result":'))
    expect(outcome).toMatchObject({ dependency: 'redis', fault: 'timeout' })
  })

  test('R01: a connection that breaks is tried at most twice', async () => {
    const { outcome, calls } = await ask((response) => response.destroy())
    expect(outcome).toMatchObject({ dependency: 'redis', fault: 'unreachable' })
    expect(calls).toBeLessThanOrEqual(2)
  })
})

describe('with Redis out of reach', () => {
  test.each(['allow', 'deny'] as const)(
    'an anonymous request fares as its limit says (%s), an authenticated one is never let in',
    async (onUnavailable) => {
      server = await startHttpServer((_, response) => response.destroy())
      const rest = createRedisRest({ url: server.url, token: TOKEN })
      const admission = createAdmission({ store: createUpstashAdmissionStore(rest), now: Date.now })
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
