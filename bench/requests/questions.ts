/** Requests to the gateway, and their expected responses. */
import { ORIGIN_BODY } from '../backends.ts'
import { COMMON_HEADERS } from '../order-requests.ts'
import type { Question } from './ask.ts'
import { EXEMPT_ADDRESS } from './variants.ts'

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
