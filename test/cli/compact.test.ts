import { createColors } from 'picocolors'
import { describe, expect, test } from 'vitest'
import {
  compactEvent,
  compactEvents,
  compactLine,
  summaryOf,
} from '../../cli/commands/audit-compact.ts'
import { compactTable, cut, shortTime } from '../../cli/compact.ts'
import { answerOf } from '../../cli/policy/show-matrix.ts'

const NOW_MS = Date.parse('2026-11-27T15:00:00Z')
const HOSTILE = 'a\u001b[2J\u0007\r\n\u202eb'
const styleOf = (width: number) => ({ width, colors: createColors(false) })
const ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'

describe('a table of records on a terminal', () => {
  const columns = ['id', 'prefix', 'name', 'subject', 'roles', 'scopes', 'status', 'expiresAt']
  const rows = [
    {
      ...{
        id: ID,
        prefix: 'pk_12345',
        name: 'the nightly report of the warehouse',
        subject: 'reports',
      },
      ...{ roles: ['reader', 'writer', 'auditor'], scopes: [], status: 'active' },
      expiresAt: '2026-12-24T15:00:00.000Z',
    },
  ]

  test.each([80, 120])(
    'fits %i columns, with complete ids, and names what is not shown',
    (width) => {
      const { text, hidden } = compactTable(rows, columns, styleOf(width), NOW_MS)
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(width)
      expect(text).toContain(ID)
      const shown = columns.filter((name) => !hidden.includes(name) && name !== 'scopes')
      for (const name of shown) expect(text).toContain(name.replace(/[A-Z]/g, ' $&').toUpperCase())
      expect(hidden).not.toContain('scopes')
    },
  )

  test('has short times, and no column without values', () => {
    const { text } = compactTable(rows, columns, styleOf(200), NOW_MS)
    expect(text).toContain('2026-12-24 15:00')
    expect(text).not.toContain('SCOPES')
    expect(shortTime('2026-11-27T14:32:55.490Z', NOW_MS)).toBe('14:32:55')
    expect(shortTime('no time', NOW_MS)).toBe('no time')
  })

  test('a text is cut where characters need two columns, and shows that', () => {
    expect(cut('東京都', 5)).toBe('東京…')
    expect(cut('short', 5)).toBe('short')
  })
})

describe('an audit event on a terminal', () => {
  const event = {
    time: '2026-11-27T14:32:55.490Z',
    requestId: ID,
    method: 'POST',
    route: '/-/admin/bans',
    status: 201,
    decision: 'allow',
    reason: 'ok',
    actor: { subject: HOSTILE, client: 'x' },
    change: { action: 'ban.create', target: HOSTILE },
  }

  test.each([80, 119])('is one line of at most %i columns, without control characters', (width) => {
    const text = compactLine(event, styleOf(width))
    expect(text.length).toBeLessThanOrEqual(width)
    expect(text).toMatch(/^[^\p{Cc}\p{Cf}]*$/u)
    expect(text.includes(ID)).toBe(width >= 118)
  })

  test('shows the change behind the reason, and the subject before the client', () => {
    expect(compactEvent(event)).toMatchObject({
      caller: HOSTILE,
      reason: `ok ban.create ${HOSTILE}`,
    })
  })

  test('is counted in the first line of a list', () => {
    const refused = { ...event, decision: 'deny' }
    expect(summaryOf([event, refused, refused])).toBe(
      '3 events, newest first: 1 allowed, 2 refused',
    )
  })
})

test('the first line of the matrix says how many routes each caller may call', () => {
  const row = { ...{ permission: null, relation: null, session: null }, authentication: null }
  const rows = [
    {
      ...row,
      route: 'GET /a',
      admits: { anonymous: true, reader: true },
      observed: [],
      limits: [],
    },
    {
      ...row,
      route: 'GET /b',
      admits: { anonymous: false, reader: true },
      observed: [],
      limits: [],
    },
  ]
  expect(answerOf({ callers: ['anonymous', 'reader'], rows })).toBe(
    '2 rows; may call: anonymous 1, reader 2',
  )
})

describe('the events of a command on a terminal', () => {
  const traceId = 'a'.repeat(32)
  const actor = { ...{ issuer: 'i', subject: 'ops', client: 'ops' }, tenant: null }
  let ids = 0
  const eventOf = (route: string, more: object = {}) => ({
    ...{ id: `e${ids++}`, time: '2026-11-27T14:32:55.490Z', status: 200, decision: 'allow' },
    ...{ reason: 'ok', method: 'GET', route, traceId, actor, address: '192.0.2.1', ...more },
  })
  const metadata = eventOf('/.well-known/oauth-authorization-server', {
    actor: { issuer: null, subject: null, client: null },
  })
  const token = eventOf('/oauth/token')
  const read = eventOf('/-/admin/limits')
  const change = { action: 'limit.override', target: 'x' }
  const changed = eventOf('/-/admin/limits/overrides', { change })
  const rowsOf = (...events: { readonly id: string; readonly time: string }[]) =>
    compactEvents(events).map(({ route, reason }) => `${route}: ${reason}`)

  test('are one row, of the change if there is one', () => {
    const row = '/-/admin/limits/overrides: ok limit.override x (+3)'
    expect(rowsOf(changed, read, token, metadata)).toEqual([row])
    expect(rowsOf(metadata, token, read, changed)).toEqual([row])
    expect(rowsOf(read, eventOf('/-/admin/bans'), token)).toEqual(['/-/admin/limits: ok (+2)'])
  })

  test('are rows of their own where a route is selected, and without a call of an operator', () => {
    expect(compactEvents([read, token], { route: '/oauth/token' })).toHaveLength(2)
    expect(rowsOf(token, metadata)).toHaveLength(2)
    expect(rowsOf(eventOf('/orders'), token)).toHaveLength(2)
  })

  test.each<[string, object]>([
    ['a second change', { change }],
    ['a refusal', { decision: 'deny' }],
    ['a failure', { decision: 'error' }],
    ['a call of somebody else', { actor: { ...actor, subject: 'mallory', client: 'm' } }],
    ['a call from another address', { address: '198.51.100.7' }],
    ['a call that a rule in observe mode would refuse', { observed: ['limited:standard'] }],
    ['a call with another trace', { traceId: 'b'.repeat(32) }],
    ['a call without a trace', { traceId: '0'.repeat(32) }],
    ['an erased event', { traceId: '' }],
    ['a request that is no call of an operator', { route: '/-/administration' }],
  ])('do not hide %s', (_what, more) => {
    expect(rowsOf(changed, eventOf('/-/admin/limits', more))).toHaveLength(2)
  })

  test('do not hide a token that another client got in the same trace', () => {
    const other = eventOf('/oauth/token', { actor: { ...actor, client: 'mallory' } })
    expect(rowsOf(changed, other)).toHaveLength(2)
  })

  test('do not hide a token that the same client got at another address', () => {
    expect(rowsOf(changed, eventOf('/oauth/token', { address: '198.51.100.7' }))).toHaveLength(2)
  })
})
