import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { groupCommands } from '../../src/audit/command-events.ts'
import { describeInLong, testInLong } from '../harness/long.ts'
import { type Credentials, type Operator, startOperator } from './operator.ts'

let operator: Operator

beforeAll(async () => {
  operator = await startOperator({ AUDIT_ADDRESSES: 'truncated' })
})

afterAll(() => operator?.close())

/** An event is stored a second or two after its request, and each query costs a Worker and a database. */
const STORED = { interval: 300 }

const HEADING =
  /^TIME +DECISION +STATUS +METHOD +ROUTE +ACTOR SUBJECT +REASON +OBSERVED +REQUEST ID +CHANGE ACTION +CHANGE TARGET\n$/

interface Event {
  readonly id: string
  readonly requestId: string
  readonly address: string
  readonly traceId: string
  readonly decision: 'allow'
  readonly reason: string
  readonly route: string | null
  readonly actor: Record<'issuer' | 'subject' | 'client', string | null>
  readonly change?: { readonly action: string; readonly target: string }
}

/** Sends a request that is refused. Returns its request id. */
async function refusedRequest(): Promise<string> {
  const answer = await fetch(`${operator.url}/orders`)
  expect(answer.status).toBe(401)
  return answer.headers.get('X-Request-Id') ?? ''
}

describe('audit query', () => {
  test('finds refused requests and the changes of an operator', async () => {
    const requestId = await refusedRequest()
    await operator.run('revoke', 'subject', 'alice')
    const query = ['audit', 'query', '--since', '1h']
    const refused = () => operator.run(...query, '--decision', 'deny', '--route', '/orders')
    await expect.poll(refused, STORED).toContain(requestId)
    const { events } = await operator.runJson<{ events: Event[] }>(...query, '--reason', 'ok')
    expect(events.map(({ change }) => change?.action)).toContain('revocation.create')
    expect(await operator.run(...query, '--reason', 'ok')).toContain('revocation.create')
    const one = await operator.runJson<{ events: Event[] }>(
      ...['audit', 'query', '--request-id', requestId.toUpperCase()],
    )
    expect(one.events).toMatchObject([{ requestId, reason: 'missing_token' }])
  })

  test('a command with a client secret is one event for readers, with the number of its parts', async () => {
    await operator.run('revoke', 'subject', 'bob')
    const list = () => operator.runJson<{ events: Event[] }>('audit', 'query', '--since', '1h')
    const isRevocation = ({ change }: Event) => change?.action === 'revocation.create'
    await expect
      .poll(async () => (await list()).events.filter(isRevocation).length, STORED)
      .toBeGreaterThan(0)
    const { events } = await list()
    const revoked = events.find(isRevocation)
    const parts = events.filter(({ traceId }) => traceId === revoked?.traceId)
    expect(parts.map(({ route }) => route)).toContain('/oauth/token')
    const groups = groupCommands(events)
    expect(groups.filter(({ event }) => parts.includes(event))).toEqual([
      { event: revoked, others: parts.length - 1 },
    ])
  })

  test('prints the found and the expected value for a refused token', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `${part({ alg: 'ES256' })}.${part({ iss: 'https://other.example' })}.AAAA`
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${operator.url}/orders`, { headers })
    expect(answer.status).toBe(401)
    const requestId = answer.headers.get('X-Request-Id') ?? ''
    const query = ['audit', 'query', '--request-id', requestId]
    const found = () => operator.runJson<{ events: object[] }>(...query)
    await expect
      .poll(async () => (await found()).events, STORED)
      .toMatchObject([
        {
          reason: 'token_rejected:iss',
          rejected: { seen: '"https://other.example"', verified: false },
        },
      ])
  })

  testInLong('returns pages of events, the newest first', async () => {
    await refusedRequest()
    const all = async (...args: string[]) =>
      operator.runJson<{ events: Event[]; cursor?: string }>('audit', 'query', ...args)
    await expect.poll(async () => (await all()).events.length).toBeGreaterThan(1)
    const first = await all('--limit', '1')
    const next = await all('--limit', '1', '--cursor', first.cursor ?? '')
    expect(next.events[0]?.id).not.toBe(first.events[0]?.id)
    const hint = await operator.attempt(['audit', 'query', '--limit', '1'])
    // The event of a refused token has a line of its own.
    expect(hint.stderr).toMatch(/^More entries: --cursor \S+$/m)
  })

  testInLong('exits with 1 for an invalid limit, and names the field', async () => {
    const { code, stdout, stderr } = await operator.attempt(['audit', 'query', '--limit', '0'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^portcullis: invalid_input: .*\n {2}query\/limit: /)
  })

  testInLong('prints nothing on stdout if no event matches', async () => {
    const { code, stdout, stderr } = await operator.attempt([
      'audit',
      'query',
      '--subject',
      'no-such-subject',
    ])
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: 'No matching events. An event is listed a second or two after its request.\n',
    })
  })
})

test('audit verify accepts the chain of a running gateway [S66]', async () => {
  await refusedRequest()
  const verified = () => operator.run('audit', 'verify')
  await expect.poll(verified, STORED).toMatch(/^ok: \d+ events, rows 1 to \d+\n/)
})

test('AUDIT_ADDRESSES=truncated removes the end of the caller’s address from the trail [S66]', async () => {
  const answer = await fetch(`${operator.url}/orders`, {
    headers: { 'CF-Connecting-IP': '203.0.113.99' },
  })
  const requestId = answer.headers.get('X-Request-Id') ?? ''
  const trail = () => operator.run('audit', 'query', '--since', '1h', '--json')
  await expect.poll(trail, STORED).toContain(requestId)
  const { events } = JSON.parse(await trail()) as { events: (Event & { address: string })[] }
  expect(events.find((event) => event.requestId === requestId)?.address).toBe('203.0.113.0/24')
  expect(JSON.stringify(events)).not.toContain('203.0.113.99')
})

test('audit erase removes a subject from the trail of a running gateway [S66]', async () => {
  const minted = await operator.runJson<{ token: string }>(
    'token',
    'mint',
    '--sub',
    'erin',
    '--role',
    'reader',
  )
  expect(await operator.statusFor(minted.token)).toBe(200)
  const query = ['audit', 'query', '--subject', 'erin']
  const found = async () => (await operator.runJson<{ events: Event[] }>(...query)).events
  await expect.poll(async () => (await found()).length, STORED).toBe(1)
  const issuer = operator.url
  const erased = await operator.runJson<{ state: string; rows: number }>(
    ...['audit', 'erase', '--subject', 'erin', '--issuer', issuer],
  )
  expect(erased).toMatchObject({ state: 'done', rows: 1 })
  expect(await found()).toEqual([])
  expect(await operator.run('audit', 'verify')).toMatch(/^ok: [\s\S]*\n1 row erased\n/)
})

test('audit tail prints each event once, continues after an outage of Redis, and exits with 0 at SIGINT', async () => {
  const before = await refusedRequest()
  const reader = ['--route', '/orders', '--decision', 'deny', '--since', '10m']
  const tail = operator.start('audit', 'tail', '--json', ...reader)
  await tail.printed(new RegExp(before))

  operator.redis.setAnswering(false)
  await tail.printed(/portcullis: dependency_unavailable, trying again\n/)
  operator.redis.setAnswering(true)
  await tail.printed(/portcullis: the gateway responds again\n/)

  const later = [await refusedRequest(), await refusedRequest()]
  for (const requestId of later) await tail.printed(new RegExp(requestId))
  tail.kill('SIGINT')
  const { code, stdout, stderr } = await tail.ended
  expect(code).toBe(0)
  // Once for each outage. On a busy machine a late call to Redis is an outage as well.
  expect(stderr).toMatch(
    /^(portcullis: \w+, trying again\nportcullis: the gateway responds again\n)+$/,
  )
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Event)
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
  expect(events.map(({ requestId }) => requestId)).toEqual(expect.arrayContaining(later))
})

testInLong(
  'audit tail omits its own reads, unless --route selects them, and prints the reads of other clients',
  async () => {
    const other = await operator.runJson<Credentials & Record<string, unknown>>(
      ...['clients', 'create', '--name', 'other', '--role', 'operator'],
      ...['--grant', 'client_credentials'],
    )
    const tail = operator.start('audit', 'tail', '--json')
    const byRoute = operator.start('audit', 'tail', '--json', '--route', '/-/admin/audit')
    const own = await operator.clientId()
    await byRoute.printed(new RegExp(`"client":"${own}"`))
    expect((await operator.attemptAs(other, 'audit', 'query')).code).toBe(0)
    await tail.printed(new RegExp(`"client":"${other.clientId}".*"route":"/-/admin/audit"`))
    const last = await refusedRequest()
    await tail.printed(new RegExp(last))
    for (const running of [tail, byRoute]) running.kill('SIGINT')
    const { stdout } = await tail.ended
    await byRoute.ended
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
    const reads = events.filter(({ route }) => route === '/-/admin/audit')
    expect(new Set(reads.map(({ actor }) => actor.client))).toEqual(new Set([other.clientId]))
  },
)

testInLong(
  'audit tail begins with events after its start, by the clock of the gateway',
  async () => {
    const before = await refusedRequest()
    const refused = () => operator.run('audit', 'query', '--decision', 'deny')
    await expect.poll(refused, STORED).toContain(before)
    const tail = operator.start('audit', 'tail', '--decision', 'deny')
    const requestIds: string[] = []
    const printed = tail.printed(/ deny +401 +GET +\/orders /)
    for (let isPrinted = false; !isPrinted; ) {
      requestIds.push(await refusedRequest())
      isPrinted = await Promise.race([printed.then(() => true), pause(500, false)])
    }
    tail.kill('SIGTERM')
    const { code, stdout, stderr } = await tail.ended
    expect(code).toBe(0)
    expect(stderr).toMatch(HEADING)
    const [row = ''] = stdout.split('\n')
    for (const [heading, cell] of [
      ['DECISION', 'deny'],
      ['METHOD', 'GET'],
      ['ROUTE', '/orders'],
      ['REASON', 'missing_token'],
      ['REQUEST ID', requestIds.find((requestId) => row.includes(requestId)) ?? 'none'],
    ] as const)
      expect(row.slice(stderr.indexOf(heading))).toMatch(new RegExp(`^${cell}( |$)`))
    expect(stdout).not.toContain(before)
    expect(requestIds.some((requestId) => stdout.includes(requestId))).toBe(true)
  },
)

describeInLong('explain', () => {
  test('--live explains a request by the state of the gateway, and counts nothing', async () => {
    const subject = crypto.randomUUID()
    const asked = ['explain', 'GET', '/orders', '--as', subject, '--role', 'reader', '--live']
    interface Explained {
      readonly decision: string
      readonly stages: readonly { readonly stage: string; readonly read: object }[]
    }
    for (const _ of [1, 2]) {
      const { decision, stages } = await operator.runJson<Explained>(...asked)
      expect(decision).toBe('allow')
      expect(stages.find(({ stage }) => stage === 'admit')?.read).toMatchObject({
        limits: [{ name: 'standard', limit: 100, remaining: 100 }],
      })
    }
    await operator.run('bans', 'create', 'subject', subject, '--for', '60s')
    const { code, stdout } = await operator.attempt([...asked, '--issuer', operator.url])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^admit +refused +banned:subject/m)
  })

  test('--request-id explains the request of an event', async () => {
    const requestId = await refusedRequest()
    const explained = () => operator.attempt(['explain', '--request-id', requestId, '--live'])
    await expect.poll(async () => (await explained()).stdout).not.toBe('')
    const { code, stdout, stderr } = await explained()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Recorded at .+: deny, 401, missing_token\.$/m)
    expect(stdout).toMatch(/^refused: GET \/orders is 401, missing_token, by the route \/orders$/m)
  })
})
