import { beforeEach, describe, expect, inject, test } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'
import { getRaw } from '../harness/raw.ts'

const stack = inject('stack')
const [here] = stack.gateways

/** Spellings of a protected path that an origin might still resolve. */
const spellings = [
  '//orders',
  '/\\orders',
  '/%5corders',
  '/%2forders',
  '/%252forders',
  '/public%2f..%2forders',
  '/public/..%2forders',
  '/public/..;/orders',
  '/public/%2e%2e/orders',
  '/public/%2e%2e%2forders',
  '/public/.%2e/orders',
  '/public/../orders',
  '/public/ping/../../orders',
  '/public/ping;/../../orders',
  '/./orders',
  '/%2e/orders',
  '/orders;',
  '/orders;x=y',
  '/orders%00',
  '/orders%00/x',
  '/%6frders',
  '/%256frders',
  '/ORDERS',
  '/Orders',
  '/orders/',
  '/orders//',
  '/orders/.',
  '/orders/%2e',
  '/orders%20',
  '/orders%09',
  '/orders%0a',
  '/orders%0d%0aX-Auth-Subject:%20eve',
  '/orders%23',
  '/orders%3f',
  '/orders%3f/public/ping',
  '/public/ping%3f/../orders',
  '/%u006frders',
  '/%c0%afrders',
  '/%c0%af/orders',
  '/%e0%80%af/orders',
  '/public/%c0%ae%c0%ae/orders',
  '/\uff0forders',
  '/o%72ders',
  '/orders%5c',
  '/orders\\',
  '/orders%',
  '/orders%zz',
  'http://127.0.0.1/orders',
  'http://evil.test/orders',
  '//evil.test/orders',
  '///orders',
  '/public/ping/..%5c..%5corders',
  '/public/ping%2f..%2f..%2forders',
]

beforeEach(() => forget(stack.origin))

describe('a protected path in every spelling [S50]', () => {
  test.each(spellings)('%s reaches no origin without a token', async (target) => {
    const { status } = await getRaw(here, target)
    expect([400, 401, 404, 405]).toContain(status)
    expect(await recordsOf(stack.origin)).toEqual([])
  })

  test.each(spellings)('%s with a token reaches the origin as /orders only', async (target) => {
    const token = await mint(stack.inlineKey)
    const { status } = await getRaw(here, target, [`Authorization: Bearer ${token}`])
    expect(status).toBeLessThan(500)
    for (const request of await recordsOf(stack.origin)) expect(request.url).toBe('/orders')
  })
})

/**
 * `wrangler dev` resolves dot segments before the gateway runs. `test/origin/dot-segments.slow.test.ts`
 * uses plain workerd.
 */
describe.runIf(stack.runtime === 'workerd')(
  'dot segments that the development runtime resolves [S50]',
  () => {
    test.each(['/public/../orders', '/./orders', '/public/%2e%2e/orders'])(
      '%s is /orders to the gateway and to the origin',
      async (target) => {
        expect((await getRaw(here, target)).status).toBe(401)
        expect(await recordsOf(stack.origin)).toEqual([])
        const token = await mint(stack.inlineKey)
        expect((await getRaw(here, target, [`Authorization: Bearer ${token}`])).status).toBe(200)
        expect((await recordsOf(stack.origin)).map(({ url }) => url)).toEqual(['/orders'])
      },
    )
  },
)

describe('only the path selects the route [S51, S52, S53]', () => {
  test.each([
    ['/orders?x=/public/ping', []],
    ['/orders?/../public/ping', []],
    ['/orders#/public/ping', []],
    ['/orders', ['X-Original-URL: /public/ping']],
    ['/orders', ['X-Rewrite-URL: /public/ping']],
    ['/orders', ['X-Forwarded-Uri: /public/ping', 'X-Forwarded-Path: /public/ping']],
    ['/orders', ['X-Forwarded-Method: OPTIONS', 'X-HTTP-Method-Override: OPTIONS']],
    ['/orders', ['User-Agent: kube-probe/1.30']],
    ['/orders', ['User-Agent: GoogleHC/1.0']],
    ['/orders?/-/healthz', []],
  ])('%s %o requires a token', async (target, headers) => {
    const { status } = await getRaw(here, target, headers)
    // On Node a target with a fragment is malformed (RFC 9112 section 3.2).
    expect(status).toBe(stack.runtime === 'node' && target.includes('#') ? 400 : 401)
    expect(await recordsOf(stack.origin)).toEqual([])
  })

  test.each([
    '/-/healthz/orders',
    '/orders/-/healthz',
    '/-/healthz/../../orders',
    '/-/readyz%2f..',
  ])('%s reaches no origin', async (target) => {
    await getRaw(here, target)
    expect(await recordsOf(stack.origin)).toEqual([])
  })
})
