import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../harness/process.ts'
import { type CreatedProject, createProject } from './project.ts'
import { makeTarballs, type Tarballs } from './tarballs.ts'

describe('an MCP server of npm create portcullis', () => {
  let tarballs: Tarballs
  let project: CreatedProject
  let url: string

  beforeAll(async () => {
    tarballs = await makeTarballs()
    project = await createProject(tarballs, 'mcp-notes', {
      flags: ['--kind', 'mcp'],
      linksPackages: true,
    })
    const server = String(await freePort())
    url = await project.start({ MCP_PORT: server, ORIGIN_URL: `http://127.0.0.1:${server}` })
  }, 300_000)

  afterAll(async () => {
    await project?.stop()
    await tarballs?.close()
  })

  /** Returns an MCP client with a token for a role. */
  async function clientOf(role: string): Promise<Client> {
    const token = await project.token('--sub', role, '--role', role)
    const client = new Client({ name: 'test', version: '1.0.0' })
    const headers = { Authorization: `Bearer ${token}` }
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
    )
    return client
  }

  test('an MCP client sees and calls the tools of its role, and no others', async () => {
    const [reader, writer] = [await clientOf('reader'), await clientOf('writer')]
    const namesOf = async (client: Client) =>
      (await client.listTools()).tools.map(({ name }) => name).sort()
    expect(await namesOf(reader)).toEqual(['list_notes'])
    expect(await namesOf(writer)).toEqual(['add_note', 'list_notes'])
    const add = { name: 'add_note', arguments: { text: 'Call Bob' } }
    await expect(reader.callTool(add)).rejects.toThrow()
    const list = async () => JSON.stringify(await reader.callTool({ name: 'list_notes' }))
    expect(await list()).not.toContain('Call Bob')
    await writer.callTool(add)
    expect(await list()).toContain('Call Bob')
    await Promise.all([reader.close(), writer.close()])
  })

  test('prints requests that it answers as their comments say', async () => {
    const { documented, received } = await project.printedRequests()
    expect(documented).toEqual(['200', '401', '403'])
    expect(received).toEqual(documented)
  })

  test('a port of the example server that is in use is named with the variables to set', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const output = await project.run('sh', '-c', `MCP_PORT=${port} node server.ts 2>&1; [ $? = 1 ]`)
    taken.close()
    expect(output).toMatch(/^MCP server: .*EADDRINUSE.*set MCP_PORT .* and ORIGIN_URL .*\n$/)
  })

  test('answers the requests of its README as documented', async () => {
    const { documented, received } = await project.requestsOfReadme()
    expect(documented).toEqual(['200', '401', '403'])
    expect(received).toEqual(documented)
  })

  test('passes its own tests, its policy tests and its type check', async () => {
    expect(await project.run('npm', 'test')).toMatch(/Tests .*1 passed/)
    const output = await project.run('npm', 'run', '-s', 'policy:test', '--', '--json')
    expect(JSON.parse(output).ok).toBe(true)
    await project.run('npm', 'run', '-s', 'typecheck')
  })
})
