/** Returns a complete, ordinary event, and variations of it. */
import { v7 } from 'uuid'
import type { AuditEvent } from '../../src/audit/event.ts'

export const anEvent = (different: Partial<AuditEvent> = {}): AuditEvent => ({
  id: v7(),
  time: '2026-11-20T12:00:00.000Z',
  requestId: '01a1f920-fe19-76f3-a8bb-11453859641c',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  actor: {
    issuer: 'https://issuer.example',
    subject: 'alice',
    client: 'web',
    tenant: 'acme',
    tokenIdHash: 'n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg',
    key: '01a1f920-fe19-7a05-8d2a-1dea6edacba3',
  },
  method: 'GET',
  route: '/orders/:id',
  decision: 'allow',
  reason: 'ok',
  status: 200,
  limits: [{ name: 'standard', limit: 100, remaining: 99 }],
  durationsMs: { authenticate: 1, admit: 12, proxy: 30 },
  address: '192.0.2.1',
  colo: 'FRA',
  ...different,
})
