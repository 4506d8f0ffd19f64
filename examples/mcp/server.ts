/** An MCP server for books, made with the official SDK. It has no code for OAuth. */
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import * as z from 'zod'

const port = Number(process.env.PORT ?? 3000)
const titles = new Map([['9780142437247', 'Moby Dick']])
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

function booksServer(): McpServer {
  const server = new McpServer({ name: 'books', version: '1.0.0' })
  server.registerTool('list_shelves', { description: 'Lists the shelves.' }, () =>
    text('fiction, history'),
  )
  server.registerTool(
    'search_books',
    {
      description: 'Finds books by their title.',
      inputSchema: { text: z.string(), limit: z.int().optional() },
    },
    (search) => text([...titles.values()].filter((title) => title.includes(search.text)).join()),
  )
  server.registerTool(
    'remove_book',
    { description: 'Removes a book.', inputSchema: { isbn: z.string() } },
    ({ isbn }) => text(titles.delete(isbn) ? 'removed' : 'unknown'),
  )
  return server
}

createServer(async (request, response) => {
  const server = booksServer()
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
  response.on('close', () => server.close())
  // The types of the SDK do not allow for `exactOptionalPropertyTypes`.
  await server.connect(transport as Parameters<McpServer['connect']>[0])
  await transport.handleRequest(request, response)
}).listen(port, '127.0.0.1', () => console.log(`MCP server on http://127.0.0.1:${port}/mcp`))
