/** `portcullis limits`: the answers say whose limit it is. */
import { afterEach, expect, test } from 'vitest'
import { otherKindOf } from '../../cli/limit-words.ts'
import { runHere } from './command-here.ts'
import { closeStubGateways, type StubResponse, startStubGateway } from './stub-gateway.ts'

const ENV = { PORTCULLIS_CLIENT_ID: 'op', PORTCULLIS_CLIENT_SECRET: 'secret' }
const OVERRIDE = { id: 'x', limit: 'standard', value: 'acme', tenant: null, requests: 200 }
const RULE = { name: 'standard', limit: 100, windowSeconds: 60, by: 'subject' }

afterEach(closeStubGateways)

async function run(args: readonly string[], responses: Record<string, StubResponse>) {
  const { url } = await startStubGateway({
    '/-/admin/limits/overrides': { body: { ...OVERRIDE, expiresAt: '2026-12-01T00:00:00Z' } },
    '/-/admin/limits/reset': { body: {} },
    ...responses,
  })
  return await runHere(['limits', ...args, '--url', url], { env: ENV })
}

const SET = ['override', 'standard', 'acme', '--requests', '200']
const page = (overrides: readonly object[] = []) => ({
  '/-/admin/limits': { body: { limits: [RULE], overrides } },
})

test('an override says whose limit it is, for how long, and what it was', async () => {
  const first = await run(SET, page())
  expect(first.stdout.split('\n')[0], first.stderr).toBe(
    'subject acme of limit standard: 200 per minute until 2026-12-01T00:00:00Z (was 100)',
  )
  const again = await run(SET, page([{ ...OVERRIDE, requests: 150 }]))
  expect(again.stdout).toContain('(was 150)')
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
  expect(JSON.parse(json.stdout)).toMatchObject(OVERRIDE)
})

test('the list has the kind of caller of each override', async () => {
  const { stdout } = await run(['list'], page([{ ...OVERRIDE, expiresAt: null }]))
  const [head = '', row = ''] = stdout.trimEnd().split('\n').slice(-2)
  expect(head.split(/ {2,}/).slice(1, 4)).toEqual(['LIMIT', 'BY', 'VALUE'])
  expect(row.split(/ {2,}/).slice(1, 4)).toEqual(['standard', 'subject', 'acme'])
})

test('a caller that the trail does not have is reported', async () => {
  const { stderr } = await run(SET, { ...page(), '/-/admin/audit': { body: { events: [] } } })
  expect(stderr).toContain('no subject acme, and limit standard counts by subject. Check the value')
})

test('a caller of another kind is reported with that kind', async () => {
  const get = async (_: string, query: Readonly<Record<string, string>>) => ({
    events: query.tenant === 'acme' ? [{}] : [],
  })
  const gateway = { get } as unknown as Parameters<typeof otherKindOf>[0]
  expect(await otherKindOf(gateway, RULE, 'acme')).toContain(
    'There is a tenant of this name: use a limit that counts by tenant',
  )
  expect(await otherKindOf(gateway, { ...RULE, by: 'tenant' }, 'acme')).toBeUndefined()
})
