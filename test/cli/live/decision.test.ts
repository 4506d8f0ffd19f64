import { stripVTControlCharacters } from 'node:util'
import { createColors } from 'picocolors'
import { expect, test } from 'vitest'
import { type Decision, decisionIn, decisionLine } from '../../../cli/live/decision.ts'
import { type AuditEvent, NO_ACTOR } from '../../../src/audit/event.ts'

const HOSTILE = 'a\u001b[2J\u0007\r\n\u009b31m\u202eb\u2028'
const PLAIN = { width: Number.POSITIVE_INFINITY, colors: createColors(false) }
const COLORED = { width: 80, colors: createColors(true) }

const event: AuditEvent & Pick<Decision, 'path'> = {
  id: '01a21d6c-6fc2-7eaa-bb2f-2d37a6d42d7b',
  time: '2026-11-27T14:32:55.490Z',
  requestId: '01a21d6c-6fc1-7791-84c3-9b1bb227cb1a',
  traceId: '70dd8028019b717790aba64dc5f86b79',
  actor: { ...NO_ACTOR, subject: 'alice', client: 'dev' },
  method: 'GET',
  route: '/orders/:id',
  path: '/orders/7',
  decision: 'deny',
  reason: 'permission_missing:orders:read',
  status: 403,
  limits: [],
  durationsMs: { authenticate: 1, admit: 12 },
  address: '127.0.0.1',
  colo: null,
}

test('a decision is one line: method, path, status, reason, caller and duration', () => {
  expect(decisionLine(event, PLAIN).split(/ {2,}/)).toEqual([
    ...['GET', '/orders/7', '403', 'permission_missing:orders:read', 'alice', '13 ms'],
  ])
})

test('a call of an MCP server names its tool, and a caller without a subject its client', () => {
  const call = { method: 'tools/call', name: 'search_books' }
  const text = decisionLine(
    { ...event, call, path: '/mcp', actor: { ...NO_ACTOR, client: 'billing' } },
    PLAIN,
  )
  expect(text).toContain('/mcp search_books ')
  expect(text).toContain('billing')
})

test('control characters of a path, a subject, a reason and a tool are escaped', () => {
  const hostile = {
    ...event,
    method: HOSTILE,
    path: HOSTILE,
    reason: HOSTILE,
    actor: { ...NO_ACTOR, subject: HOSTILE },
    call: { method: 'tools/call', name: HOSTILE },
  }
  expect(decisionLine(hostile, PLAIN)).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u)
})

test('a terminal gets one line of at most its width, with colors, and the status is never cut', () => {
  const text = decisionLine({ ...event, path: `/${'x'.repeat(300)}` }, COLORED)
  expect(text).toContain('\u001b[31m403\u001b[39m')
  const plain = stripVTControlCharacters(text)
  expect(plain.length).toBeLessThanOrEqual(COLORED.width)
  expect(plain).toMatch(/^GET +\/x+… +403 .*alice +13 ms$/)
})

test('a decision is read from the log of a Worker, and nothing else is', () => {
  const line = JSON.stringify(event)
  expect(decisionIn(line)).toEqual(event)
  expect(decisionIn(`▲ [WARNING] ${line}`)).toEqual(event)
  for (const other of [
    '',
    'x',
    `x ${line}`,
    '{"id":"1"}',
    '{"id":"1","decision":"allow"}',
    line.slice(0, -1),
  ])
    expect(decisionIn(other), other).toBeUndefined()
})
