/** A server of the official SDK with what the scenarios of the conformance suite use. */
import {
  createMcpHandler,
  McpServer,
  MissingRequiredClientCapabilityError,
} from '@modelcontextprotocol/server'
import * as z from 'zod'
import { startHttpServer } from '../../../harness/http-server.ts'

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

export async function startServer() {
  const handler = createMcpHandler(() => {
    const server = new McpServer(
      { name: 'conformance', version: '1.0.0' },
      { capabilities: { tools: { listChanged: true }, prompts: { listChanged: true } } },
    )
    server.registerTool('test_simple_text', {}, () =>
      text('This is a simple text response for testing.'),
    )
    server.registerTool('test_error_handling', {}, () => ({
      ...text('This tool intentionally returns an error for testing'),
      isError: true,
    }))
    server.registerTool('test_missing_capability', {}, () => {
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
    })
    server.registerTool('test_streaming_elicitation', {}, async ({ mcpReq }) => {
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: 0, progress: 1 },
      })
      return text('done')
    })
    server.registerTool('test_logging_tool', {}, () => text('nothing to log'))
    server.registerTool('test_trigger_tool_change', {}, () => {
      handler.notify.toolsChanged()
      return text('changed')
    })
    server.registerTool('test_trigger_prompt_change', {}, () => {
      handler.notify.promptsChanged()
      return text('changed')
    })
    server.registerPrompt('test_simple_prompt', { description: 'A prompt' }, () => ({
      messages: [{ role: 'user', content: { type: 'text', text: 'A simple prompt' } }],
    }))
    for (const name of ['forbidden', 'limited']) server.registerTool(name, {}, () => text(name))
    server.registerTool('strict', { inputSchema: z.object({ count: z.number() }) }, () =>
      text('strict'),
    )
    return server
  })
  const server = await startHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const left = new AbortController()
    response.on('close', () => left.abort())
    const method = request.method ?? 'GET'
    const answer = await handler.fetch(
      new Request(`http://localhost${request.url}`, {
        method,
        headers: request.headers as Record<string, string>,
        signal: left.signal,
        ...(method === 'POST' && { body }),
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.flushHeaders()
    for await (const chunk of answer.body ?? []) response.write(chunk)
    response.end()
  })
  return {
    url: server.url,
    async close() {
      await handler.close()
      await server.close()
    },
  }
}
