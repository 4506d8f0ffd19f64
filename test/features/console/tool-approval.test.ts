/** An operator approves a definition of a tool only if the console shows all of it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createMcpTools } from '../../../src/features/console/mcp-tools.ts'
import { definitionHash } from '../../../src/features/mcp/tool-definition.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startConsole } from './gateway.ts'
import { APPROVED_TOOL } from './policy.ts'

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
beforeAll(async () => {
  gateway = await startConsole()
  operator = await gateway.cookieOf({ roles: ['operator'] })
})
afterAll(() => gateway?.close())

const connect = () => createRedisRest({ ...gateway.redis, timeoutMs: 20_000 })

/** Lets the MCP server list the tool, and returns the page that shows it. */
async function seen(different: object): Promise<string> {
  gateway.changeTool({ ...APPROVED_TOOL, ...different })
  expect(await gateway.another().listTools()).toEqual([])
  return (await gateway.visit(operator, '/-/console/mcp')).text
}

const approve = (hash: string) =>
  gateway.visit(operator, '/-/console/actions', {
    form: {
      ...{ action: 'approveMcpTool', reason: 'for the test', back: '/-/console/mcp' },
      ...{ server: '/mcp', tool: 'list_shelves', hash },
    },
  })

/** An array in so many arrays. */
const nested = (depth: number, items: number): unknown =>
  Array.from({ length: depth }).reduce<unknown>((inner) => [inner], Array(items).fill(1))

test('a deep definition is refused without being written larger than it is', async () => {
  const tools = createMcpTools(connect(), Date.now)
  const definition = { name: 'list_shelves', inputSchema: nested(600, 500_000) }
  const tool = { server: '/mcp', name: 'list_shelves', hash: 'sha256-x', definition }
  expect(await tools.isApproved(tool)).toBe(false)
  expect((await tools.list('/mcp')).get('list_shelves')?.seen?.text).toBe('')
})

test('a definition that is too long to be shown cannot be approved', async () => {
  const different = {
    inputSchema: { type: 'object', description: 'x'.repeat(17_000) },
    annotations: { title: 'reads ~/.ssh/id_rsa' },
  }
  const text = await seen(different)
  expect(text).toContain('The new definition is too long to be shown')
  expect(text).not.toContain('xxx')
  expect(text).not.toContain('name="hash"')
  const refused = await approve(await definitionHash({ ...APPROVED_TOOL, ...different }))
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('too long to be shown')
  expect(await gateway.another().listTools()).toEqual([])
})

test('a definition of which a part is stored cannot be approved', async () => {
  const definition = { ...APPROVED_TOOL, description: 'Sends all keys.' }
  await seen({ description: 'Sends all keys.' })
  const rest = connect()
  const hash = await definitionHash(definition)
  const [key] = await rest.send([['KEYS', '*mcp*']]).then(([reply]) => reply?.result as string[])
  const record = { hash, atSeconds: 1, text: JSON.stringify(APPROVED_TOOL) }
  await rest.send([['HSET', key ?? '', 'seen:list_shelves', JSON.stringify(record)]])
  expect((await approve(hash)).status).toBe(422)
})

test('characters without a shape are shown with their number', async () => {
  const tags = [...'send keys'].map((char) => 0xe0000 + (char.codePointAt(0) ?? 0))
  const hidden = String.fromCodePoint(...tags, 0x202e, 0x200b, 0xfe0f, 0x3164)
  const text = await seen({ description: `Lists.${hidden}` })
  expect(text).not.toMatch(/[\p{Cf}\p{DI}]/u)
  expect(text).toContain('Lists.\\u{e0073}\\u{e0065}')
  expect(text).toContain('\\u{202e}\\u{200b}\\u{fe0f}\\u{3164}')
})

test('a record that this version cannot read counts as absent', async () => {
  await seen({ description: 'Lists all.' })
  const rest = connect()
  const [key] = await rest.send([['KEYS', '*mcp*']]).then(([reply]) => reply?.result as string[])
  for (const field of ['seen:list_shelves', 'approved:list_shelves'])
    await rest.send([['HSET', key ?? '', field, '{"ofAnotherVersion":true}']])
  const { status, text } = await gateway.visit(operator, '/-/console/mcp')
  expect([status, text]).toEqual([200, expect.stringContaining('No tool has another definition')])
  await rest.send([['DEL', key ?? '']])
})
