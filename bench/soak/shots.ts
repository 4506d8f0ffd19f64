/** Requests of the soak, with their expected outcomes. */
import type { Outgoing } from '../chaos/client.ts'
import type { Expectation } from './ledger.ts'

export interface Shot {
  readonly expectation: Expectation
  readonly outgoing: Omit<Outgoing, 'url'> & { readonly path: string }
}

/** The sender of a request, and its address. */
export interface Asker {
  readonly credential?: string
  readonly address: string
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Creates a request that must be admitted as `subject` (empty: anonymous), with this status. */
export function goodShot(
  kind: string,
  { credential, address }: Asker,
  request: { method?: string; path: string; body?: object; subject: string; right?: number[] },
): Shot {
  const { method = 'GET', path, body, subject, right = [200] } = request
  return {
    expectation: { kind, right, mayReachOrigin: 'yes', subject },
    outgoing: { method, path, ...contentOf(credential, address, body) },
  }
}

/**
 * Creates a request that must be refused with one of these statuses, and must not reach the origin.
 */
export function badShot(
  kind: string,
  right: readonly number[],
  { credential, address }: Asker,
  request: { method?: string; path?: string; body?: object | string; type?: string } = {},
): Shot {
  const { method = 'GET', path = '/orders', body, type } = request
  const content = contentOf(credential, address, body)
  return {
    expectation: { kind, right, mayReachOrigin: 'no', subject: '' },
    outgoing: {
      method,
      path,
      ...content,
      headers: { ...content.headers, ...(type !== undefined && { 'content-type': type }) },
    },
  }
}

function contentOf(credential: string | undefined, address: string, body?: object | string) {
  return {
    headers: {
      accept: 'application/json',
      'cf-connecting-ip': address,
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
      ...(body !== undefined && JSON_TYPE),
    },
    body: typeof body === 'object' ? JSON.stringify(body) : body,
  }
}
