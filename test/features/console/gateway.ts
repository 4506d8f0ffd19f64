/** A gateway with a console, and an audit trail that a test fills. */
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { insertAuditEvents } from '../../../src/audit/sql/audit-chain.ts'
import { SQLITE } from '../../../src/audit/sql/dialect.ts'
import { MIGRATIONS } from '../../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../../src/audit/sql/schema.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import {
  type ConsoleOptions,
  console as consoleFeature,
} from '../../../src/features/console/index.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { type OperatorsOptions, operators } from '../../../src/features/operators/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { databaseOver } from '../../../src/runtimes/node/audit/database.ts'
import { openSqlite } from '../../../src/runtimes/node/audit/sqlite.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { openSession, type Person, SIGN_IN_VARIABLES } from '../operators/sessions.ts'

export const policyWith = (options: ConsoleOptions = {}, sessions?: OperatorsOptions['sessions']) =>
  definePolicy({
    abuse: { exempt: ['192.0.2.1'] },
    features: [
      operators(sessions === undefined ? {} : { sessions }),
      authorizationServer(),
      openapi(),
      signIn(),
      consoleFeature(options),
    ],
    roles: {
      reader: ['orders:read'],
      operator: ['portcullis:*', 'requests:explain'],
      viewer: ['portcullis:console:open'],
      support: ['portcullis:console:open', 'portcullis:callers:read'],
    },
    limits: { standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } },
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
      { method: 'GET', path: '/public', anonymous: true },
    ],
  })

export async function startConsole(
  options: ConsoleOptions = {},
  sessions?: OperatorsOptions['sessions'],
) {
  const sqlite = openSqlite(':memory:')
  const db = databaseOver({ dialect: SQLITE, run: async (statements) => sqlite.run(statements) })
  const policy = policyWith(options, sessions)
  const gateway = await startGateway({
    policy,
    signs: true,
    variables: SIGN_IN_VARIABLES,
    bindings: { AUDIT_DB: db },
  })
  const isolate = gateway.isolate()
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
      sqlite.close()
    },
  }
}
