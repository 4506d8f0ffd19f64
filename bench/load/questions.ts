/** Requests to the gateway, and their expected responses. */
import { ORIGIN_BODY } from '../stack/backends.ts'
import { EXEMPT_ADDRESS } from '../workers/variants.ts'

export const REQUESTS = ['read', 'write'] as const
/** `read`: `GET /orders` with a query; `write`: `POST /orders` with a body. */
export type RequestKind = (typeof REQUESTS)[number]

export interface Question {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly status: number
  /** The whole body, a part of it, or a check of it. */
  readonly answer: string | { readonly holds: string } | ((body: string) => boolean)
}

export function isRight({ status, answer }: Question, got: number, body: string): boolean {
  if (got !== status) return false
  if (typeof answer === 'function') return answer(body)
  return typeof answer === 'string' ? body === answer : body.includes(answer.holds)
}

/** Reports whether the gateway refused because of its load or because Redis was too slow. */
export const isShed = (status: number, body: string): boolean =>
  status === 503 && /"code":"(?:overloaded|dependency_unavailable)"/.test(body)

/** Path of a list of orders, which every gateway has. */
export const ORDERS_PATH = '/orders?limit=20'
const ORDER = '{"item":"lamp","quantity":2,"position":[120.5,-40,3.25]}'

const COMMON_HEADERS: Readonly<Record<string, string>> = {
  accept: 'application/json',
  'user-agent': 'portcullis-bench',
  'cf-connecting-ip': EXEMPT_ADDRESS,
}

/** Returns the headers of a caller with a credential, as a browser or a client library sends them. */
export const bearing = (
  credential: string,
  address = EXEMPT_ADDRESS,
): Readonly<Record<string, string>> => ({
  authorization: `Bearer ${credential}`,
  ...COMMON_HEADERS,
  'cf-connecting-ip': address,
})

/** Returns a request for a list of orders, which the origin answers. */
export const read = (credential: string): Question => ({
  method: 'GET',
  path: ORDERS_PATH,
  headers: bearing(credential),
  status: 200,
  answer: ORIGIN_BODY,
})

/** Returns a request for a new order, which the origin answers. */
const write = (credential: string): Question => ({
  method: 'POST',
  path: '/orders',
  headers: { ...bearing(credential), 'content-type': 'application/json' },
  body: ORDER,
  status: 200,
  answer: ORIGIN_BODY,
})

/** Returns one request for each of `credentials`. */
export const orders = (kind: RequestKind, credentials: readonly string[]): readonly Question[] =>
  credentials.map(kind === 'read' ? read : write)

/** Returns a request with an expected problem document of the gateway. */
export const problem = (
  code: string,
  status: number,
  of: Partial<Pick<Question, 'method' | 'path' | 'headers' | 'body'>> = {},
): Question => ({
  method: 'GET',
  path: ORDERS_PATH,
  headers: COMMON_HEADERS,
  ...of,
  status,
  answer: { holds: `"code":"${code}"` },
})

/** Sends one request. Throws an `Error` of one line for an unexpected response. */
export async function expectAnswer(url: string, question: Question, what: string): Promise<void> {
  const { method, path, headers, body } = question
  const response = await fetch(url + path, {
    method,
    headers,
    ...(body !== undefined && { body }),
  })
  const text = await response.text()
  if (isRight(question, response.status, text)) return
  // A body with status 200 may contain a token.
  const shown = response.status === 200 ? '' : ` ${text.slice(0, 200)}`
  throw new Error(`${what}: expected ${question.status}, got ${response.status}${shown}`)
}

/** Distance of the changed character from the end. The last bits of a signature may be unused. */
const FORGED_FROM_END = 10

/** Returns `token` with another character in its signature. */
export function forged(token: string): string {
  const at = token.length - FORGED_FROM_END
  return token.slice(0, at) + (token[at] === 'a' ? 'b' : 'a') + token.slice(at + 1)
}
