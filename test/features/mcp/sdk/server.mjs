/**
 * An MCP server of the official SDK with tools that send requests to the client: sampling, elicitation,
 * roots and ping. Prints its port. `/count` returns the number of other requests so far.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const sessions = new Map()

function createMcpServer() {
  const mcp = new McpServer({ name: 'test', version: '1.0.0' })
  const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
  mcp.registerTool('ask_client', {}, async () => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'Say hello' } }]
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
    const sample = await mcp.server.createMessage({ messages, maxTokens: 10 })
    const input = await mcp.server.elicitInput({ message: 'Your name?', requestedSchema })
    const { roots } = await mcp.server.listRoots()
    const pong = await mcp.server.ping()
    return text({ sample: sample.content, input, roots, pong })
  })
  mcp.registerTool('ask_refusing_client', {}, async () => {
    const requestedSchema = { type: 'object', properties: {} }
    const error = await mcp.server
      .elicitInput({ message: 'fail', requestedSchema })
      .catch(({ code, message }) => ({ code, message }))
    return text(error)
  })
  return mcp
}

async function transportOf(request) {
  const known = sessions.get(request.headers['mcp-session-id'])
  if (known !== undefined) return known
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  })
  await createMcpServer().connect(transport)
  return transport
}

let count = 0
const server = createServer(async (request, response) => {
  if (request.url === '/count') return response.end(String(count))
  count += 1
  await (await transportOf(request)).handleRequest(request, response)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
