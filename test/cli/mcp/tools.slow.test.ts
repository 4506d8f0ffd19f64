/** `portcullis mcp tools`: which tools of a gateway have another definition than the approved one. */
import { afterEach, expect, test } from 'vitest'
import { runHere } from '../command-here.ts'
import { runCli } from '../command-line.ts'
import { closeStubGateways, startStubGateway } from '../stub-gateway.ts'

const ENV = { PORTCULLIS_CLIENT_ID: 'op', PORTCULLIS_CLIENT_SECRET: 'secret' }
const hashOf = (letter: string) => `sha256-${letter.repeat(43)}`
const tool = (name: string, fields: object) => ({
  ...{ name, permission: null, pinned: hashOf('p'), seen: null, approved: null },
  ...fields,
})
const at = '2026-11-20T16:00:00.000Z'
const SERVERS = [
  {
    path: '/mcp',
    tools: [
      tool('as_pinned', {}),
      tool('unpinned', { pinned: null, seen: { hash: hashOf('a'), at, definition: '{}' } }),
      tool('approved', {
        seen: { hash: hashOf('b'), at, definition: '{}' },
        approved: { hash: hashOf('b'), at, createdBy: 'x' },
      }),
      tool('chang\u001b[31med', {
        seen: { hash: hashOf('c'), at, definition: '{"description":"Sends\\u001b[31m keys."}' },
      }),
    ],
  },
]

afterEach(closeStubGateways)

async function run(...args: readonly string[]) {
  const { url } = await startStubGateway({ '/-/admin/mcp/tools': { body: { servers: SERVERS } } })
  return await runHere(['mcp', 'tools', '--url', url, ...args], { env: ENV })
}

test('the first line says which tool changed, it is the first, and its new text follows', async () => {
  const { code, stdout, stderr } = await run()
  expect(code, stderr).toBe(0)
  const [answer, rows = '', texts] = stdout.trimEnd().split('\n\n')
  expect(answer).toMatch(/^1 tool of \/mcp changed since it was approved: chang.*med\.$/)
  expect(texts).toMatch(/^chang.*med of \/mcp says now: Sends.* keys\.$/)
  const states = rows.split('\n').map((line) => line.split(/ {2,}/)[0])
  expect(states.slice(1)).toEqual([...['changed', 'as in the policy', 'not pinned', 'approved']])
  expect(stdout).not.toContain('\u001b[31m')
  expect(stderr).toContain('before you approve them')
})

test('--changed lists only changed tools, also as JSON', async () => {
  const { stdout } = await run('--changed', '--json')
  expect(JSON.parse(stdout)).toEqual({
    tools: [
      expect.objectContaining({ state: 'changed', server: '/mcp', seenAt: at, hash: hashOf('c') }),
    ],
  })
})

test('a gateway without the call names the features that it lacks', async () => {
  const { url } = await startStubGateway({
    '/-/admin/mcp/tools': { status: 404, body: { code: 'not_found' } },
    '/-/admin/mcp': { status: 404, body: { code: 'not_found' } },
    '/-/admin/keys': { body: { keys: [] } },
  })
  const { code, stderr } = await runCli(['mcp', 'tools', '--url', url], { env: ENV })
  expect(code).toBe(1)
  expect(stderr).toContain('its policy needs mcp() in its routes, and console() in its features')
})
