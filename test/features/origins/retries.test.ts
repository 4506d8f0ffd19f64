/** Retries, canaries and breakers of origins, with connections that really fail. */
import { describe, expect, test } from 'vitest'
import { Unavailable } from '../../../src/errors.ts'
import { isInCanary } from '../../../src/features/origins/canary.ts'
import { retriedOrigin } from '../../../src/features/origins/retried-origin.ts'
import type { Origin, OriginRequest } from '../../../src/origin/origin.ts'

const requestWith = (fields: Partial<OriginRequest> = {}, method = 'GET'): OriginRequest => ({
  incoming: new Request('https://x.test/a', { method }),
  headers: new Map(),
  body: null,
  timeoutMs: 60_000,
  ...fields,
})

/** An origin that fails with each of the errors in turn, and then answers. */
function failing(...errors: readonly Error[]) {
  const attempts: OriginRequest[] = []
  const origin: Origin = {
    async send(request) {
      attempts.push(request)
      const error = errors[attempts.length - 1]
      if (error !== undefined) throw error
      return new Response('ok')
    },
  }
  return { origin, attempts }
}

const lost = new Unavailable('origin', 'unreachable')

describe('a request whose connection fails', () => {
  test('is sent again, for what is left of its time', async () => {
    const { origin, attempts } = failing(lost)
    let nowMs = 0
    const retried = retriedOrigin({
      origin: {
        send(request) {
          nowMs += 300
          return origin.send(request)
        },
      },
      now: () => nowMs,
    })
    expect(await (await retried.send(requestWith())).text()).toBe('ok')
    expect(attempts.map(({ timeoutMs }) => timeoutMs)).toEqual([60_000, 59_700])
  })

  test.each([
    ['a POST', requestWith({}, 'POST')],
    ['a PATCH', requestWith({}, 'PATCH')],
    ['a body', requestWith({ body: new Uint8Array([1]) }, 'PUT')],
    ['a WebSocket', requestWith({ headers: new Map([['upgrade', 'websocket']]) })],
  ])('is not sent again if it is %s', async (_, request) => {
    const { origin, attempts } = failing(lost)
    await expect(retriedOrigin({ origin, max: 3 }).send(request)).rejects.toBe(lost)
    expect(attempts).toHaveLength(1)
  })

  test.each([
    ['a timeout', new Unavailable('origin', 'timeout')],
    ['an invalid response', new Unavailable('origin', 'malformed')],
    ['an open breaker', new Unavailable('origin', 'unreachable', { shortCircuited: true })],
    ['a defect', new Error('defect')],
  ])('is not sent again after %s', async (_, error) => {
    const { origin, attempts } = failing(error)
    await expect(retriedOrigin({ origin, max: 3 }).send(requestWith())).rejects.toBe(error)
    expect(attempts).toHaveLength(1)
  })

  test('is sent again within the budget: an origin that is down gets a tenth more requests', async () => {
    const { origin, attempts } = failing(...Array<Error>(1_000).fill(lost))
    const retried = retriedOrigin({ origin, max: 3, percent: 10 })
    for (let sent = 0; sent < 200; sent++) await retried.send(requestWith()).catch(() => {})
    expect(attempts.length).toBeGreaterThan(210)
    expect(attempts.length).toBeLessThanOrEqual(221)
  })
})

describe('a canary', () => {
  const caller = (subject: string) =>
    ({ issuer: 'https://idp.test', subject }) as OriginRequest['caller'] & object

  test.each([0, 1, 5, 50, 100])('of %i percent gets that share of the callers', (percent) => {
    let count = 0
    for (let at = 0; at < 20_000; at++)
      if (isInCanary({ caller: caller(`user-${at}`) }, 'orders', percent)) count += 1
    expect(count / 200).toBeGreaterThanOrEqual(percent === 0 ? 0 : percent * 0.85)
    expect(count / 200).toBeLessThanOrEqual(percent * 1.15)
  })

  test('keeps its callers when its share grows, and other origins have other callers', () => {
    const names = Array.from({ length: 2_000 }, (_, at) => `user-${at}`)
    const chosen = (origin: string, percent: number) =>
      names.filter((name) => isInCanary({ caller: caller(name) }, origin, percent))
    expect(chosen('orders', 20)).toEqual(expect.arrayContaining(chosen('orders', 10)))
    const both = chosen('orders', 50).filter((name) => chosen('stock', 50).includes(name))
    expect(both.length).toBeLessThan(600)
  })

  test('selects anonymous callers by their address', () => {
    const at = (address: string) => isInCanary({ caller: null, address }, 'orders', 50)
    const addresses = Array.from({ length: 100 }, (_, host) => `192.0.2.${host}`)
    const chosen = addresses.filter(at)
    expect(chosen.length).toBeGreaterThan(20)
    expect(chosen.length).toBeLessThan(80)
    expect(addresses.filter(at)).toEqual(chosen)
  })
})
