/** A gateway before a server whose responses a test writes, in this process. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as z from 'zod'
import { createRelationTuples } from '../../../src/access/relations/redis/tuples.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createClientRegistry } from '../../../src/features/authorization-server/redis/clients.ts'
import { cors } from '../../../src/features/cors/index.ts'
import { type McpOptions, mcp } from '../../../src/features/mcp/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'

export { PUBLIC_URL }
export const PAGE = 'https://inspector.test'

const SERVER: McpOptions<'standard' | 'costly'> = {
  path: '/mcp',
  permission: 'mcp:use',
  limits: ['standard'],
  cors: cors({ origins: [PAGE] }),
  recheckSeconds: 1,
  recheckGraceSeconds: 0,
  maxMessageBytes: 65_536,
  tools: {
    list_shelves: true,
    search_books: {
      permission: 'books:read',
      arguments: z.strictObject({ text: z.string().max(20) }),
      limits: ['costly'],
    },
    remove_book: { permission: 'books:delete', arguments: 'any' },
    read_note: {
      arguments: z.strictObject({ id: z.string() }),
      relation: { object: 'note:{arguments.id}', relation: 'reader' },
    },
  },
  resources: {
    'file:///public/*': true,
    'file:///private/*': { permission: 'books:delete' },
  },
  prompts: { summary: true, audit: { permission: 'books:delete' } },
}

const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'note',
      relations: { reader: { this: {} } },
      metadata: { relations: { reader: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}

export type Respond = (request: IncomingMessage, response: ServerResponse, body: string) => unknown

export type McpGateway = Awaited<ReturnType<typeof startMcpGateway>>

export async function startMcpGateway(
  options: Partial<McpOptions<'standard' | 'costly'>> = {},
  features: readonly Feature[] = [],
) {
  /** What reached the server. */
  const received: { method: string; headers: IncomingMessage['headers']; body: string }[] = []
  let respond: Respond = (_, response) => void response.writeHead(202).end()
  const limit = { windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } as const
  const policy = definePolicy({
    roles: { reader: ['mcp:use', 'books:read'], librarian: ['mcp:use', 'books:*'], guest: [] },
    limits: { standard: { ...limit, limit: 10_000 }, costly: { ...limit, limit: 2 } },
    relations: relations({ model: MODEL, issuers: [ISSUER] }),
    abuse: { bans: false, authenticationFailures: false },
    features: [...features],
    routes: [...mcp({ ...SERVER, ...options })],
  })
  const { redis, events, ...gateway } = await startGateway({
    policy,
    signs: true,
    async origin(request, response) {
      let body = ''
      for await (const chunk of request) body += chunk
      received.push({ method: request.method ?? '', headers: request.headers, body })
      await respond(request, response, body)
    },
  })
  /** Creates another isolate: it shares only Redis and the environment with the first. */
  const isolate = () => gateway.isolate()
  const here = isolate()

  const token = (subject = 'alice', roles: readonly string[] = ['reader'], claims: object = {}) =>
    gateway.token({ claims: { sub: subject, roles, ...claims } })

  async function send(
    body: unknown,
    headers: Readonly<Record<string, string | undefined>> = {},
    method = 'POST',
    to = here,
  ): Promise<Response> {
    const fields = new Headers({ Authorization: `Bearer ${await token()}` })
    if (method === 'POST') fields.set('Content-Type', 'application/json')
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) fields.delete(name)
      else fields.set(name, value)
    }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return to.fetch(
      new Request(`${PUBLIC_URL}/mcp`, {
        method,
        headers: fields,
        ...(method === 'POST' && { body: text }),
      }),
    )
  }

  return {
    redis,
    events,
    received,
    send,
    token,
    isolate,
    fetch: (path: string, init?: RequestInit) => here.fetch(new Request(PUBLIC_URL + path, init)),
    revocations: createRevocations(gateway.connection, Date.now),
    clients: createClientRegistry({
      redis: gateway.connection,
      configured: [],
      publicUrl: PUBLIC_URL,
      now: Date.now,
    }),
    tuples: createRelationTuples(gateway.connection, ['user', 'note']),
    respondWith(next: Respond) {
      respond = next
    },
    /** Answers each request with one message, as JSON or as an event. */
    answerWith(message: (request: { id: unknown }) => unknown, as: 'json' | 'events' = 'json') {
      respond = (_, response, body) => {
        const text = JSON.stringify(message(JSON.parse(body)))
        if (as === 'json') response.setHeader('Content-Type', 'application/json').end(text)
        else
          response
            .setHeader('Content-Type', 'text/event-stream')
            .end(`event: message\ndata: ${text}\n\n`)
      }
    },
    reset() {
      received.length = 0
      events.length = 0
    },
    close: gateway.close,
  }
}

export const call = (name: string, values: object = {}, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: values },
})

export const request = (method: string, params?: object, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params !== undefined && { params }),
})

export interface JsonRpcError {
  readonly jsonrpc: string
  readonly id?: string | number
  readonly error: {
    readonly code: number
    readonly message: string
    readonly data: Readonly<Record<string, unknown>>
  }
}

/** Returns the code of the problem, of a document or of a JSON-RPC error. */
export const codeOf = async (response: Response): Promise<readonly [number, unknown]> => {
  const body = (await response.json()) as { code?: string } & Partial<JsonRpcError>
  return [response.status, body.error?.data.code ?? body.code]
}

/** The messages in the data of the events of a response. */
export const messagesIn = (text: string) =>
  text
    .split('\n\n')
    .flatMap((event) => event.match(/^data: (.+)$/m)?.[1] ?? [])
    .map((data) => JSON.parse(data))
