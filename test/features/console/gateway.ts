/** A gateway with a console, and an audit trail that a test fills. */
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { insertAuditEvents } from '../../../src/audit/sql/audit-chain.ts'
import { MIGRATIONS } from '../../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../../src/audit/sql/schema.ts'
import type { ConsoleOptions } from '../../../src/features/console/index.ts'
import type { OperatorsOptions } from '../../../src/features/operators/index.ts'
import { consumerDatabase } from '../../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../../src/runtimes/node/audit/open-database.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { openSession, type Person, SIGN_IN_VARIABLES } from '../operators/sessions.ts'
import { APPROVED_TOOL, policyWith } from './policy.ts'

export async function startConsole(
  options: ConsoleOptions = {},
  sessions?: OperatorsOptions['sessions'],
) {
  let tool: object = APPROVED_TOOL
  const database = await openDatabase('sqlite::memory:')
  const db = consumerDatabase(database)
  const policy = policyWith(options, sessions)
  const gateway = await startGateway({
    policy,
    signs: true,
    issuers: (key) => [
      { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [key.publicJwk] } },
      { issuer: 'https://github.com', audience: PUBLIC_URL },
    ],
    variables: {
      ISSUER_CLIENTS: JSON.stringify([
        ...JSON.parse(SIGN_IN_VARIABLES.ISSUER_CLIENTS),
        {
          issuer: 'https://github.com',
          ...{ id: 'gateway', secret: 'a'.repeat(40), signIn: { name: 'x', preset: 'github' } },
        },
      ]),
    },
    bindings: { AUDIT_DB: db },
    origin: (request, response) =>
      void request.resume().on('end', () => {
        const isMcp = request.url === '/mcp'
        response.setHeader('Content-Type', 'application/json')
        response.end(
          isMcp ? JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: [tool] } }) : '[]',
        )
      }),
  })
  const isolate = gateway.isolate()

  /** Returns the names of the tools that a reader sees. */
  async function listTools({ fetch }: Pick<typeof isolate, 'fetch'>): Promise<readonly string[]> {
    const token = await gateway.token({ claims: { sub: 'rita', roles: ['reader'] } })
    const response = await fetch(
      new Request(`${PUBLIC_URL}/mcp`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${token}`,
          'CF-Connecting-IP': '192.0.2.1',
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      }),
    )
    const text = await response.text()
    const { result } = JSON.parse(text) as { result?: { tools: { name: string }[] } }
    if (result === undefined) throw new Error(text)
    return result.tools.map(({ name }) => name)
  }

  return {
    ...gateway,
    isolateFetch: isolate.fetch,
    db,
    cookieOf: (person: Person) => openSession(gateway.redis, PUBLIC_URL, person),
    async store(events: readonly AuditEvent[]) {
      const seal = createCheckpointSealer([])
      await withSchema(db, MIGRATIONS, () =>
        insertAuditEvents(db, events, { seal, nowMs: Date.now() }),
      )
    },
    /** Sets the tool that the MCP server has from now on. */
    changeTool(changed: object) {
      tool = changed
    },
    listTools: () => listTools(isolate),
    /** Creates another isolate, which has cached nothing. */
    another() {
      const other = gateway.isolate()
      return { listTools: () => listTools(other) }
    },
    /** Loads a page as a browser does, or sends a form with `form`. */
    async visit(
      cookie: string,
      path: string,
      {
        form,
        headers = {},
      }: { form?: Record<string, string>; headers?: Record<string, string> } = {},
    ) {
      const response = await isolate.fetch(
        new Request(`${PUBLIC_URL}${path}`, {
          method: form === undefined ? 'GET' : 'POST',
          headers: {
            ...(cookie !== '' && { Cookie: cookie }),
            'CF-Connecting-IP': '192.0.2.1',
            Accept: 'text/html',
            'Sec-Fetch-Mode': 'navigate',
            'Sec-Fetch-Dest': 'document',
            ...(form && {
              Origin: PUBLIC_URL,
              'Content-Type': 'application/x-www-form-urlencoded',
            }),
            ...headers,
          },
          ...(form && { body: new URLSearchParams(form).toString() }),
        }),
      )
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
    async close() {
      await gateway.close()
      database.close()
    },
  }
}
