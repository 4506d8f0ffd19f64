/** What shared caches between callers and the gateway may store. */
import { beforeEach, describe, expect, inject, test } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import { forget, recordsOf } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'

const stack = inject('stack')
const [here] = stack.gateways
/** Requests per minute and address that the limit of the public route admits. */
const ANONYMOUS_LIMIT = 60

beforeEach(() => forget(stack.origin))

const ping = (headers: Record<string, string> = {}) =>
  fetch(`${here}/public/ping`, { headers: { ...fromAddress(newAddress()), ...headers } })

async function asReader(method: string, path: string): Promise<Response> {
  const token = await mint(stack.inlineKey, { claims: { roles: ['reader'] } })
  // A new address, because limits by address are shared with the other files.
  const headers = { authorization: `Bearer ${token}`, ...fromAddress(newAddress()) }
  return fetch(here + path, { method, headers })
}

describe('shared caches [S61]', () => {
  test('an anonymous and an authenticated caller of one URL get responses that vary by Authorization [S61]', async () => {
    const anonymous = await ping()
    expect([anonymous.status, anonymous.headers.get('vary')]).toEqual([200, 'Authorization'])
    const known = await asReader('GET', '/public/ping')
    expect([known.status, known.headers.get('vary')]).toEqual([200, 'Authorization'])
    expect(known.headers.get('cache-control')).toContain('private')
    const callers = (await recordsOf(stack.origin)).map(({ headers }) => headers['x-auth-subject'])
    expect(callers).toEqual([undefined, [expect.any(String)]])
  })

  test.each([
    ['an anonymous caller of a protected route', 401, () => fetch(`${here}/orders`)],
    ['a bad token on a public route', 401, () => ping({ authorization: 'Bearer a.b.c' })],
    ['a missing permission', 403, () => asReader('POST', '/reports')],
    ['an unknown path', 404, () => fetch(`${here}/nowhere`)],
    ['an unknown method', 405, () => fetch(`${here}/orders`, { method: 'PUT' })],
    ['invalid input', 422, () => asReader('GET', '/orders/1')],
  ])('the refusal of %s is not stored: %d [S61]', async (_name, status, call) => {
    const refused = await call()
    expect(refused.status).toBe(status)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(await recordsOf(stack.origin)).toEqual([])
  })

  test('the refusal of an exhausted limit is not stored: 429 [S61]', async () => {
    const address = newAddress()
    const statuses: number[] = []
    // Two windows, because the first one may end while this loop runs.
    for (let count = 0; count <= 2 * ANONYMOUS_LIMIT; count++) {
      const { status, headers } = await ping(fromAddress(address))
      statuses.push(status)
      expect(headers.get(status === 429 ? 'cache-control' : 'vary')).toBe(
        status === 429 ? 'no-store' : 'Authorization',
      )
    }
    expect(statuses).toContain(429)
  })
})
