/** An app behind a guard, over a real Redis, with really signed tokens. */
import { vi } from 'vitest'
import type { AuditEvent } from '../../src/audit/event.ts'
import { type GuardOptions, portcullis } from '../../src/hono/index.ts'
import {
  AUDIENCE,
  createKey,
  ISSUER,
  mint,
  type TestKey,
  type TokenOptions,
} from '../harness/issuer.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

export interface Surroundings {
  readonly redis: TestRedis
  readonly key: TestKey
  /** Audit events so far. */
  readonly events: AuditEvent[]
  /** The options that have no default, and an audit sink that keeps events. */
  readonly options: GuardOptions
  /** Returns the headers of a caller with these roles. */
  bearer(roles?: readonly string[], token?: TokenOptions): Promise<{ Authorization: string }>
}

export async function surroundings(): Promise<Surroundings> {
  const redis = await startTestRedis()
  const key = await createKey('facade')
  const events: AuditEvent[] = []
  return {
    redis,
    key,
    events,
    options: {
      issuers: [{ issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } as never }],
      redis: { url: redis.url, token: redis.token, timeoutMs: 5_000 },
      audit: { record: (event) => void events.push(event) },
      clientAddress: () => '192.0.2.1',
    },
    async bearer(roles = ['reader'], { claims, header } = {}) {
      const token = await mint(key, {
        claims: { sub: 'eve', roles, ...claims },
        ...(header && { header }),
      })
      return { Authorization: `Bearer ${token}` }
    },
  }
}

export const ROLES = { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] }

/** Creates a guard with roles, unless the options have others. */
export const guardWith = ({ options }: Surroundings, more: Partial<GuardOptions> = {}) =>
  portcullis<object, string, string>({ ...options, roles: ROLES, ...more })

/** Returns what was logged as errors while `act` ran. */
export async function errorsLogged(act: () => unknown): Promise<string> {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  try {
    await act()
    return log.mock.calls.flat().join('\n')
  } finally {
    log.mockRestore()
  }
}

export const json = (body: string, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body,
})
