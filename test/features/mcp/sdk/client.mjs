/**
 * An MCP client of the official SDK that answers requests of its server. Arguments: the URL and a
 * bearer token. Prints the result of each tool as a line of JSON.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

const [url, token] = process.argv.slice(2)
const client = new Client(
  { name: 'test', version: '1.0.0' },
  { capabilities: { sampling: {}, elicitation: {}, roots: {} } },
)
client.setRequestHandler(CreateMessageRequestSchema, () => ({
  role: 'assistant',
  model: 'none',
  content: { type: 'text', text: 'hello' },
}))
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  if (params.message === 'fail') throw new Error('the user is absent')
  return { action: 'accept', content: { name: 'Alice' } }
})
client.setRequestHandler(ListRootsRequestSchema, () => ({
  roots: [{ uri: 'file:///home/alice', name: 'home' }],
}))

const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
})
await client.connect(transport)
const { tools } = await client.listTools()
for (const { name } of tools) {
  const { content } = await client.callTool({ name, arguments: {} }, undefined, { timeout: 15_000 })
  console.log(JSON.stringify({ name, returned: JSON.parse(content[0].text) }))
}
await transport.terminateSession()
await client.close()
