/** Requests to the gateway, and their expected responses. */
import { ORIGIN_BODY } from '../backends.ts'
import { COMMON_HEADERS } from '../order-requests.ts'
import type { Question } from './ask.ts'
import { EXEMPT_ADDRESS } from './variants.ts'

const ORDER = '{"item":"lamp","quantity":2,"position":[120.5,-40,3.25]}'
const JSON_HEADERS = { 'content-type': 'application/json' }

/** Returns the headers of every caller. By default the address is exempt from counting. */
export const anybody = (address = EXEMPT_ADDRESS): Record<string, string> => ({
  ...COMMON_HEADERS,
  'cf-connecting-ip': address,
})

/** Returns the headers of a caller with a credential. */
export const bearing = (credential: string, address?: string): Record<string, string> => ({
  authorization: `Bearer ${credential}`,
  ...anybody(address),
})

/** Returns a request for a list of orders, which the origin answers. */
export const read = (credential: string): Question => ({
  method: 'GET',
  path: '/orders?limit=20',
  headers: bearing(credential),
  status: 200,
  answer: ORIGIN_BODY,
})

/** Returns a request for a new order, which the origin answers. */
export const write = (credential: string): Question => ({
  method: 'POST',
  path: '/orders',
  headers: { ...bearing(credential), ...JSON_HEADERS },
  body: ORDER,
  status: 200,
  answer: ORIGIN_BODY,
})

/**
 * Returns a request with a body of about `bytes` bytes (plus or minus 200), which the gateway
 * validates.
 */
export const payload = (credential: string, bytes: number): Question => ({
  ...write(credential),
  path: '/payloads',
  body: payloadOf(bytes),
})

/** Every fifth request of a caller is a write. */
const IN_ALL = 5
/** Distance between consecutive callers; coprime to their number. */
const STRIDE = 77

/**
 * Returns four reads and one write for each of `credentials`. Their number must be a multiple of
 * five, and not of seven or eleven. One request in five is a write, and kinds of credentials are
 * mixed.
 */
export function mixed(credentials: readonly string[]): readonly Question[] {
  const { length } = credentials
  return Array.from({ length: length * IN_ALL }, (_, index) => {
    const credential = credentials[(index * STRIDE) % length] ?? ''
    const writes = index % IN_ALL === Math.floor(index / length)
    return writes ? write(credential) : read(credential)
  })
}

const BATCH = '0190a6b4-0000-7000-8000-000000000001'
const TEXT = 'a note of ordinary length, as people write them into such a field. '

/** Returns notes with at least `bytes` bytes. */
export function payloadOf(bytes: number): string {
  const notes: object[] = []
  const text = () => JSON.stringify({ batch: BATCH, notes })
  while (text().length < bytes - 100) {
    const id = notes.length
    notes.push({ id, tag: 'changed', text: TEXT.repeat(2), position: [id, -id / 2, 3.25] })
  }
  return text()
}

/** Returns the expected problem document of the gateway. */
export const problem = (
  code: string,
  status: number,
  of: Partial<Pick<Question, 'method' | 'path' | 'headers' | 'body'>>,
): Question => ({
  ...{ method: 'GET', path: '/orders?limit=20', headers: anybody() },
  ...of,
  status,
  answer: { holds: `"code":"${code}"` },
})
