/** Empty audit databases of each kind, in this process or on a real server. */
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { hasPostgres, startPostgres } from '../harness/postgres.ts'

export const KINDS = ['SQLite', ...(hasPostgres ? (['PostgreSQL'] as const) : [])] as const

export async function startDatabase(kind: (typeof KINDS)[number]) {
  const server = kind === 'PostgreSQL' ? await startPostgres() : undefined
  const connection = await openDatabase(
    server === undefined ? 'sqlite::memory:' : await server.database('counts'),
  )
  return {
    db: consumerDatabase(connection),
    async close() {
      await connection.close()
      await server?.close()
    },
  }
}
