/** The audit database in PostgreSQL 13 or later, with the package `pg`. */
import type { PoolClient, QueryResult } from 'pg'
import { DatabaseError, type Fault, type Result } from '../../../audit/sql/database.ts'
import { POSTGRES } from '../../../audit/sql/postgres/dialect.ts'
import { type Rendered, render } from '../../../audit/sql/statement.ts'
import type { OpenDatabase } from './database.ts'
import { sha256Now } from './digest.ts'

/** The consumer, its schedules, and queries of operators. */
const MAX_CONNECTIONS = 4
const CONNECT_TIMEOUT_MS = 5_000
/** As in D1. */
const STATEMENT_TIMEOUT_MS = 30_000
/** Without a response of the server, such as after a loss of the network. */
const RESPONSE_TIMEOUT_MS = 33_000
/** The transaction of a lost process ends, and with it the locks of its rows. */
const IDLE_TRANSACTION_TIMEOUT_MS = 10_000
/** A transaction may lose a race several times. */
const MAX_ATTEMPTS = 10

/** SQLSTATEs of races after which the transaction can be repeated. */
const RACES = new Set(['40001', '40P01'])
/** What the trail expects, by SQLSTATE. Messages depend on the language of the server. */
const FAULTS: Readonly<Record<string, Fault>> = {
  '42P01': 'missing',
  '42703': 'missing',
  '42701': 'duplicate',
}
/** The key of an advisory lock. */
const SCHEMA_LOCK = 'SELECT pg_advisory_xact_lock(8101820098873224300)'
/** SQLSTATEs of a pool of connections that does not keep named statements. */
const UNNAMED = new Set(['26000', '42P05'])
/** Types int8 and numeric, which `pg` returns as text. */
const NUMBERS = new Set([20, 1700])

/**
 * Opens the database of a URL. Rejects if the server refuses the user or has no such database; a
 * server that is not reachable is an outage, which a later call may find ended. Several processes of
 * several machines may open the database at once.
 */
export async function openPostgres(
  url: string,
): Promise<Omit<OpenDatabase, 'dialect' | 'migrations'>> {
  const { default: pg } = await loadDriver()
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'portcullis',
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: RESPONSE_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    types: {
      getTypeParser: (type, format) =>
        NUMBERS.has(type) ? Number : pg.types.getTypeParser(type, format as 'text'),
    },
  })
  // A connection that breaks. Its statement rejects too, and the pool replaces it.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))

  /** Becomes true when a pool of connections has not kept a name. */
  let isUnnamed = false

  async function inTransaction(
    begin: string,
    statements: readonly Rendered[],
    haveNames: boolean,
  ): Promise<readonly Result[]> {
    const client = await pool.connect()
    try {
      await client.query(begin)
      const results: Result[] = []
      for (const { text, values, isRepeated } of statements) {
        const name = haveNames && isRepeated ? nameOf(text) : undefined
        const query = { text, values: [...values], name }
        results.push(resultOf(await client.query(query)))
      }
      await client.query('COMMIT')
      client.release()
      return results
    } catch (error) {
      const isUsable = stateOf(error) !== '' && (await isRolledBack(client))
      // Otherwise ends the connection, and with it the transaction.
      client.release(!isUsable)
      throw error
    }
  }

  async function repeated(begin: string, statements: readonly Rendered[]) {
    for (let attempt = 1; ; attempt += 1) {
      const haveNames = !isUnnamed && statements.some(({ isRepeated }) => isRepeated)
      try {
        return await inTransaction(begin, statements, haveNames)
      } catch (error) {
        const state = stateOf(error)
        if (haveNames && UNNAMED.has(state)) isUnnamed = true
        else if (!RACES.has(state) || attempt >= MAX_ATTEMPTS) throw errorOf(error, state)
      }
    }
  }

  async function migrate(statements: readonly Rendered[]): Promise<void> {
    await repeated('BEGIN', [{ text: SCHEMA_LOCK, values: [] }, ...statements])
  }

  try {
    // Shows that this user may create tables.
    await migrate([render(POSTGRES.recordsMigrations, POSTGRES)])
  } catch (error) {
    if (isMistake(stateOf(error))) {
      await pool.end()
      throw error
    }
    console.error(`audit: the database is not reachable (${reasonOf(error)})`)
  }
  return {
    run: (statements) => repeated('BEGIN ISOLATION LEVEL REPEATABLE READ', statements),
    migrate,
    close: () => pool.end(),
  }
}

/** Names of statements by their texts, which are constants of the program. */
const names = new Map<string, string>()

/** Returns the name with which the server keeps a statement. */
function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = `portcullis-${sha256Now(text)}`
  names.set(text, name)
  return name
}

async function loadDriver(): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (cause) {
    throw new Error('PostgreSQL needs the package pg: npm install pg', { cause })
  }
}

const isRolledBack = (client: PoolClient): Promise<boolean> =>
  client.query('ROLLBACK').then(
    () => true,
    () => false,
  )

/** Returns the SQLSTATE of an error of the server, and otherwise an empty string. */
function stateOf(error: unknown): string {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

/** Returns text for the log. Errors before the first statement contain no data. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  return (error as NodeJS.ErrnoException).code ?? error.message
}

/** Wrong credentials, a database that does not exist, or a permission that is missing. */
const isMistake = (state: string): boolean => /^(28|3D|3F|42)/.test(state)

function errorOf(error: unknown, state: string): unknown {
  const fault = state.startsWith('23') ? 'constraint' : FAULTS[state]
  return fault === undefined ? error : new DatabaseError(fault, { cause: error })
}

const resultOf = ({ command, rowCount, rows }: QueryResult): Result => ({
  rows,
  changes: command === 'SELECT' ? 0 : (rowCount ?? 0),
})
