/// <reference types="node" />
/** An MCP server with two tools, made with the official SDK. It has no code for OAuth: replace it by your own. */
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import * as z from 'zod'

const port = Number(process.env.MCP_PORT ?? 3000)
const notes = ['Buy milk']
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

function notesServer(): McpServer {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('list_notes', { description: 'Lists the notes.' }, () =>
    text(notes.join('\n')),
  )
  server.registerTool(
    'add_note',
    { description: 'Adds a note.', inputSchema: { text: z.string() } },
    (note) => text(`${notes.push(note.text)} notes`),
  )
  return server
}

createServer(async (request, response) => {
  const server = notesServer()
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
  response.on('close', () => void server.close())
  // The types of the SDK do not allow for `exactOptionalPropertyTypes`.
  await server.connect(transport as Parameters<McpServer['connect']>[0])
  await transport.handleRequest(request, response)
})
  .on('error', ({ message }) => {
    console.error(
      `MCP server: ${message}; set MCP_PORT to a free port, and ORIGIN_URL to http://127.0.0.1:PORT, in dev.env`,
    )
    process.exit(1)
  })
  .listen(port, '127.0.0.1')
