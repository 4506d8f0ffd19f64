/** Real PostgreSQL servers. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from './process.ts'

const PASSWORD = 'secret-of-postgres'
/** Debian installs the server outside of PATH. */
const FOLDERS = [
  ...(process.env.PATH ?? '').split(':'),
  ...globSync('/usr/lib/postgresql/*/bin').toSorted(),
]
const BIN = FOLDERS.find((folder) => existsSync(join(folder, 'initdb')))

export const hasPostgres = BIN !== undefined

export interface PostgresServer {
  /** The URL of a database, which is created if it does not exist. */
  database(name: string): Promise<string>
  /** Runs a statement as the administrator, outside of the databases. */
  query(sql: string): Promise<readonly Record<string, unknown>[]>
  /** The id of the process of the server. */
  pid(): number | undefined
  /** Ends the server at once, as a crash does, and with it all connections. */
  crash(): Promise<void>
  /** Starts the server after a crash. */
  start(): Promise<void>
  close(): Promise<void>
}

/** The server refuses to run as root. Returns the command as the user of Debian's package. */
const unprivileged = (command: readonly string[]): readonly string[] =>
  process.getuid?.() === 0
    ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', ...command]
    : command

const idOf = (flag: '-u' | '-g'): number =>
  Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))

/**
 * Creates a cluster in a new folder and starts its server. Its collation is not that of bytes, and
 * its users need a password.
 */
export async function startPostgres(): Promise<PostgresServer> {
  const bin = BIN ?? '/usr/bin'
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-postgres-'))
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, PASSWORD)
  if (process.getuid?.() === 0)
    for (const path of [folder, passwordFile]) chownSync(path, idOf('-u'), idOf('-g'))
  const [create = '', ...options] = unprivileged([
    join(bin, 'initdb'),
    ...['-D', data, '-U', 'admin', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8'],
    ...['--locale=C', '--locale-provider=icu', '--icu-locale=en-US', '--no-sync'],
  ])
  execFileSync(create, options, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  const port = await freePort()
  const url = (name: string) => `postgres://admin:${PASSWORD}@127.0.0.1:${port}/${name}`
  let child: ChildProcess | undefined

  async function query(sql: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client(url('postgres'))
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }

  async function start(): Promise<void> {
    const [command = '', ...args] = unprivileged([
      ...[join(bin, 'postgres'), '-D', data, '-p', `${port}`, '-c', 'listen_addresses=127.0.0.1'],
      ...['-c', 'unix_socket_directories=', '-c', 'logging_collector=off'],
    ])
    const started = spawn(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    child = started
    await new Promise<void>((resolve, reject) => {
      let text = ''
      started.stderr?.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        if (text.includes('database system is ready to accept connections')) resolve()
      })
      started.once('exit', (code) => reject(new Error(`postgres exited (${code}):\n${text}`)))
    })
  }

  async function crash(): Promise<void> {
    const running = child
    if (running === undefined) return
    child = undefined
    const ended = once(running, 'exit')
    running.kill('SIGQUIT')
    await ended
  }

  await start()
  return {
    async database(name) {
      const found = await query(`SELECT 1 FROM pg_database WHERE datname = '${name}'`)
      if (found.length === 0) await query(`CREATE DATABASE ${name}`)
      return url(name)
    },
    query,
    pid: () => child?.pid,
    crash,
    start,
    async close() {
      await crash()
      rmSync(folder, { recursive: true })
    },
  }
}
