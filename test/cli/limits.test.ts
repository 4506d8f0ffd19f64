/** `portcullis limits`: the answers say whose limit it is. */
import { afterEach, expect, test } from 'vitest'
import { runHere } from './command-here.ts'
import { closeStubGateways, type StubResponse, startStubGateway } from './stub-gateway.ts'

const ENV = { PORTCULLIS_CLIENT_ID: 'op', PORTCULLIS_CLIENT_SECRET: 'secret' }
const OVERRIDE = { id: 'x', limit: 'standard', value: 'acme', tenant: null, requests: 200 }
const RULE = { name: 'standard', limit: 100, windowSeconds: 60, by: 'subject' }

const ANSWER = { ...OVERRIDE, expiresAt: '2026-12-01T00:00:00Z' }

afterEach(closeStubGateways)

async function run(args: readonly string[], responses: Record<string, StubResponse>) {
  const { url, requests } = await startStubGateway({
    '/-/admin/limits/overrides': { body: ANSWER },
    '/-/admin/limits/reset': { body: {} },
    ...responses,
  })
  const result = await runHere(['limits', ...args, '--url', url], { env: ENV })
  const calls = requests.filter(({ path }) => path.startsWith('/-/admin/'))
  return { ...result, calls: calls.map(({ path }) => path.slice('/-/admin'.length)) }
}

const SET = ['override', 'standard', 'acme', '--requests', '200']
const page = (overrides: readonly object[] = []) => ({
  '/-/admin/limits': { body: { limits: [RULE], overrides } },
})

test('an override says whose limit it is, for how long, and what it replaces', async () => {
  // The list may have the override of another tenant or issuer.
  const others = page([{ ...OVERRIDE, requests: 150 }])
  const first = await run(SET, others)
  const text = 'subject acme of limit standard: 200 per minute until 2026-12-01T00:00:00Z'
  expect(first.stdout.split('\n')[0], first.stderr).toBe(text)
  const replaces = { requests: 120, expiresAt: null }
  const again = await run(SET, {
    ...others,
    '/-/admin/limits/overrides': { body: { ...ANSWER, replaces } },
  })
  expect(again.stdout.split('\n')[0]).toBe(`${text} (was 120)`)
  expect(again.stdout).not.toContain('replaces')
  const reset = await run(['reset', 'standard', 'acme'], page())
  expect(reset.stdout).toContain('standard is reset for subject acme;')
})

test('an override is set without the permission to list limits, and JSON stays the answer', async () => {
  for (const status of [403, 404]) {
    const refused = { '/-/admin/limits': { status, body: { status } } }
    const { code, stdout } = await run(SET, refused)
    expect([code, stdout]).toEqual([0, expect.stringContaining('acme')])
  }
  const json = await run([...SET, '--json'], page())
  expect(JSON.parse(json.stdout)).toEqual(ANSWER)
})

test.each([
  ['override', SET],
  ['reset', ['reset', 'standard', 'acme']],
])('%s needs two more calls for its words, and none with JSON', async (_, args) => {
  const responses = { ...page(), '/-/admin/audit': { body: { events: [] } } }
  const [order = '', ...more] = (await run(args, responses)).calls
  expect(more).toEqual(['/limits', '/audit'])
  expect((await run([...args, '--json'], responses)).calls).toEqual([order])
})

test('the list has the kind of caller of each override', async () => {
  const { stdout } = await run(['list'], page([{ ...OVERRIDE, expiresAt: null }]))
  const [head = '', row = ''] = stdout.trimEnd().split('\n').slice(-2)
  expect(head.split(/ {2,}/).slice(1, 4)).toEqual(['LIMIT', 'BY', 'VALUE'])
  expect(row.split(/ {2,}/).slice(1, 4)).toEqual(['standard', 'subject', 'acme'])
})

test('a caller that the trail does not have is reported, if all of it was searched', async () => {
  const { stderr } = await run(SET, { ...page(), '/-/admin/audit': { body: { events: [] } } })
  expect(stderr).toContain('no subject acme, and limit standard counts by subject. Check the value')
  const part = { body: { events: [], cursor: 'next' } }
  expect((await run(SET, { ...page(), '/-/admin/audit': part })).stderr).toBe('')
})
