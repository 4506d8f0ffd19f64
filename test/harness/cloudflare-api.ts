/**
 * A local stand-in of the part of the Cloudflare API that `wrangler` and `portcullis deploy` use. It
 * keeps its resources in memory, runs D1 queries in SQLite, and records each call.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { startHttpServer } from './http-server.ts'

const BASE = '/client/v4'
const ACCOUNT = '0123456789abcdef0123456789abcdef'
const SUBDOMAIN = 'acme'
/** The state of the route on workers.dev. */
const ENABLED = { enabled: true, previews_enabled: true }

/** One call, without the base path and the account. */
export interface ApiCall {
  readonly method: string
  readonly path: string
  readonly body: string
}

/** A stored version of a Worker. */
export interface WorkerVersion {
  readonly id: string
  /** The bindings of its upload. Inherited secrets are included. */
  readonly bindings: readonly Binding[]
}

export interface Binding {
  readonly type: string
  readonly name: string
  readonly [member: string]: unknown
}

export interface Worker {
  readonly versions: readonly WorkerVersion[]
  /** The version that serves. */
  readonly active: string
}

export interface CloudflareApi {
  /** The value of `CLOUDFLARE_API_BASE_URL`. */
  readonly url: string
  readonly token: string
  readonly accountId: string
  /** Returns the calls since the last {@link forget}, in their order. */
  calls(): readonly ApiCall[]
  /** Returns the calls that change something, as `POST /queues`. */
  writes(): readonly string[]
  forget(): void
  /** Refuses the next call whose `METHOD /path body` matches. Wrangler does not repeat such a call. */
  failOnce(call: RegExp): void
  queues(): readonly string[]
  databases(): readonly string[]
  buckets(): readonly string[]
  worker(name: string): Worker | undefined
  /** Returns the names of the tables of a database. */
  tables(database: string): readonly string[]
  close(): Promise<void>
}

interface Queue {
  readonly id: string
  readonly name: string
  readonly consumers: { id: string; body: Record<string, unknown> }[]
}

interface Database {
  readonly id: string
  readonly name: string
  readonly sqlite: DatabaseSync
}

interface Script {
  versions: WorkerVersion[]
  deployments: { readonly id: string; readonly version: string }[]
}

/** The reply of a handler: a result, or the status and the code of an error. */
type Reply =
  | { readonly result: unknown; readonly total?: number }
  | { readonly status: number; readonly code: number; readonly message: string }

interface Call extends ApiCall {
  readonly query: URLSearchParams
}

const missing = (message: string, code = 10007): Reply => ({ status: 404, code, message })
const found = (result: unknown): Reply => ({ result })
const page = (list: readonly unknown[]): Reply => ({ result: list, total: list.length })

/** Starts the stand-in on a free loopback port. */
export async function startCloudflareApi(): Promise<CloudflareApi> {
  const token = `token-${randomUUID()}`
  const queues: Queue[] = []
  const databases: Database[] = []
  const buckets: string[] = []
  const scripts = new Map<string, Script>()
  let recorded: ApiCall[] = []
  const failures: RegExp[] = []

  /** Handlers by method and path. `:x` matches one part of a path and becomes an argument. */
  const routes: readonly (readonly [
    route: string,
    answer: (call: Call, ...parts: string[]) => Reply,
  ])[] = [
    ['GET /queues', ({ query }) => page(queues.filter(named(query)).map(queueOf))],
    ['POST /queues', createQueue],
    ['GET /queues/:id/consumers', (_, id) => page(queueBy(id)?.consumers.map(consumerOf) ?? [])],
    ['POST /queues/:id/consumers', addConsumer],
    ['PUT /queues/:id/consumers/:consumer', changeConsumer],
    ['GET /d1/database', ({ query }) => page(databases.filter(named(query)).map(databaseOf))],
    ['POST /d1/database', createDatabase],
    [
      'GET /d1/database/:id',
      (_, id) =>
        foundOr(
          databases.find((one) => one.id === id),
          databaseOf,
        ),
    ],
    ['POST /d1/database/:id/query', runQuery],
    ['GET /r2/buckets', () => found({ buckets: buckets.map((name) => ({ name })) })],
    [
      'GET /r2/buckets/:name',
      (_, name) =>
        foundOr(
          buckets.find((one) => one === name),
          (of) => ({ name: of }),
        ),
    ],
    ['POST /r2/buckets', createBucket],
    [
      'GET /workers/services/:name',
      (_, name) => foundOr(scripts.get(name), () => serviceOf(name), 10090),
    ],
    ['GET /workers/scripts/:name/secrets', (_, name) => foundOr(scripts.get(name), secretsOf)],
    ['GET /workers/scripts/:name/settings', (_, name) => foundOr(scripts.get(name), settingsOf)],
    [
      'GET /workers/scripts/:name/deployments',
      (_, name) => foundOr(scripts.get(name), deploymentsOf),
    ],
    ['POST /workers/scripts/:name/deployments', deploy],
    ['GET /workers/scripts/:name/versions', (_, name) => foundOr(scripts.get(name), versionsOf)],
    ['GET /workers/scripts/:name/versions/:id', versionOf],
    ['PUT /workers/scripts/:name', (call, name) => upload(call, name, true)],
    ['POST /workers/scripts/:name/versions', (call, name) => upload(call, name, false)],
    ['GET /workers/scripts/:name/subdomain', () => found(ENABLED)],
    ['POST /workers/scripts/:name/subdomain', () => found(ENABLED)],
    ['PUT /workers/scripts/:name/schedules', () => found({ schedules: [] })],
    ['PUT /workers/scripts/:name/domains/records', () => found([])],
    [
      'POST /workers/scripts/:name/domains/changeset',
      () => found({ added: [], removed: [], updated: [], conflicting: [] }),
    ],
    ['GET /workers/scripts/:name/script-settings', () => found({})],
    ['PATCH /workers/scripts/:name/script-settings', () => found({})],
    [
      'GET /workers/workers/:name',
      (_, name) => foundOr(scripts.get(name), () => ({ name, subdomain: ENABLED })),
    ],
    ['PATCH /workers/workers/:name', (_, name) => found({ name, subdomain: ENABLED })],
    ['GET /workers/subdomain', () => found({ subdomain: SUBDOMAIN })],
  ]

  function createQueue({ body }: Call): Reply {
    const { queue_name: name } = JSON.parse(body) as { queue_name: string }
    if (queues.some((queue) => queue.name === name))
      return { status: 409, code: 11009, message: `Queue name '${name}' is already taken.` }
    const queue = { id: randomUUID().replaceAll('-', ''), name, consumers: [] }
    queues.push(queue)
    return found(queueOf(queue))
  }

  const queueBy = (id: string | undefined) => queues.find((queue) => queue.id === id)

  function addConsumer({ body }: Call, id?: string): Reply {
    const queue = queueBy(id)
    if (queue === undefined) return missing('queue not found')
    if (queue.consumers.length > 0)
      return { status: 409, code: 11004, message: 'Queue already has a consumer.' }
    const consumer = { id: randomUUID(), body: JSON.parse(body) as Record<string, unknown> }
    queue.consumers.push(consumer)
    return found(consumerOf(consumer))
  }

  function changeConsumer({ body }: Call, id?: string, consumerId?: string): Reply {
    const consumer = queueBy(id)?.consumers.find((one) => one.id === consumerId)
    if (consumer === undefined) return missing('consumer not found')
    consumer.body = JSON.parse(body) as Record<string, unknown>
    return found(consumerOf(consumer))
  }

  function createDatabase({ body }: Call): Reply {
    const { name } = JSON.parse(body) as { name: string }
    if (databases.some((one) => one.name === name))
      return {
        status: 400,
        code: 7502,
        message: `A database with the name '${name}' already exists`,
      }
    const database = { id: randomUUID(), name, sqlite: new DatabaseSync(':memory:') }
    databases.push(database)
    return found(databaseOf(database))
  }

  function runQuery({ body }: Call, id?: string): Reply {
    const database = databases.find((one) => one.id === id)
    if (database === undefined) return missing('database not found')
    const { sql, params = [] } = JSON.parse(body) as { sql: string; params?: string[] }
    try {
      return found([{ success: true, meta: {}, results: rowsOf(database.sqlite, sql, params) }])
    } catch (error) {
      return { status: 400, code: 7500, message: (error as Error).message }
    }
  }

  function createBucket({ body }: Call): Reply {
    const { name } = JSON.parse(body) as { name: string }
    if (buckets.includes(name))
      return {
        status: 409,
        code: 10004,
        message: 'The bucket you tried to create already exists, and you own it.',
      }
    buckets.push(name)
    return found({ name })
  }

  /** Stores a version, with the secrets of the version before. */
  function upload({ body }: Call, name = '', serves: boolean): Reply {
    const metadata = /name="metadata"\r\n\r\n(\{.*?\})\r\n--/s.exec(body)?.[1]
    if (metadata === undefined) return { status: 400, code: 10021, message: 'no metadata' }
    const { bindings = [] } = JSON.parse(metadata) as { bindings?: Binding[] }
    const absent = bindings.find(
      ({ type, service }) => type === 'service' && !scripts.has(String(service)),
    )
    if (absent !== undefined)
      return {
        status: 400,
        code: 10143,
        message: `Could not resolve service binding '${absent.name}'`,
      }
    const script = scripts.get(name) ?? { versions: [], deployments: [] }
    const kept = secretsIn(script.versions.at(-1)).filter(
      (secret) => !bindings.some((binding) => binding.name === secret.name),
    )
    const version = { id: randomUUID(), bindings: [...bindings, ...kept] }
    script.versions.push(version)
    if (serves) script.deployments.unshift({ id: randomUUID(), version: version.id })
    scripts.set(name, script)
    return found({
      id: serves ? name : version.id,
      etag: 'e',
      deployment_id: version.id,
      startup_time_ms: 5,
      metadata: {},
      resources: { script: { etag: 'e' } },
    })
  }

  function deploy({ body }: Call, name = ''): Reply {
    const script = scripts.get(name)
    const { versions } = JSON.parse(body) as { versions: { version_id: string }[] }
    const version = versions[0]?.version_id ?? ''
    if (!script?.versions.some(({ id }) => id === version)) return missing('version not found')
    const deployment = { id: randomUUID(), version }
    script.deployments.unshift(deployment)
    return found({ id: deployment.id })
  }

  function versionOf(_: Call, name = '', id = ''): Reply {
    const version = scripts.get(name)?.versions.find((one) => one.id === id)
    return foundOr(version, describeVersion)
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://stand-in')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const method = request.method ?? 'GET'
    const inAccount = `${BASE}/accounts/${ACCOUNT}`
    const path = url.pathname.startsWith(inAccount)
      ? url.pathname.slice(inAccount.length)
      : url.pathname
    recorded.push({ method, path, body })
    const reply = replyTo({ method, path, body, query: url.searchParams }, request)
    response.setHeader('Content-Type', 'application/json')
    if ('result' in reply) {
      const total = reply.total ?? 1
      const result_info = {
        page: 1,
        per_page: 100,
        count: total,
        total_count: total,
        total_pages: 1,
      }
      response.end(
        JSON.stringify({
          success: true,
          errors: [],
          messages: [],
          result: reply.result,
          result_info,
        }),
      )
      return
    }
    response.statusCode = reply.status
    const errors = [{ code: reply.code, message: reply.message }]
    response.end(JSON.stringify({ success: false, errors, messages: [], result: null }))
  }

  function replyTo(call: Call, { headers }: IncomingMessage): Reply {
    if (headers.authorization !== `Bearer ${token}`)
      return { status: 401, code: 10000, message: 'Authentication error' }
    if (call.path === `${BASE}/user/tokens/verify`) return found({ status: 'active' })
    if (call.path.startsWith(BASE))
      return { status: 403, code: 10000, message: 'Authentication error' }
    const line = `${call.method} ${call.path}`
    const failure = failures.findIndex((one) => one.test(`${line} ${call.body}`))
    if (failure >= 0) {
      failures.splice(failure, 1)
      return { status: 400, code: 10013, message: 'An unknown error has occurred' }
    }
    for (const [route, handler] of routes) {
      const parts = partsIn(route, line)
      if (parts !== undefined) return handler(call, ...parts)
    }
    return missing(`the stand-in has no ${line}`, 7003)
  }

  const server = await startHttpServer((request, response) => {
    void answer(request, response)
  })
  return {
    url: server.url + BASE,
    token,
    accountId: ACCOUNT,
    calls: () => recorded,
    writes: () => recorded.filter(isWrite).map(({ method, path }) => `${method} ${path}`),
    forget() {
      recorded = []
    },
    failOnce: (call) => void failures.push(call),
    queues: () => queues.map(({ name }) => name),
    databases: () => databases.map(({ name }) => name),
    buckets: () => buckets,
    worker(name) {
      const script = scripts.get(name)
      const active = script?.deployments[0]?.version
      return script && active ? { versions: script.versions, active } : undefined
    },
    tables(name) {
      const sqlite = databases.find((one) => one.name === name)?.sqlite
      const rows =
        sqlite?.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() ?? []
      return rows.map((row) => String(row.name))
    },
    close: () => server.close(),
  }
}

/** Returns what the placeholders of `route` match in `line`, or undefined for another call. */
function partsIn(route: string, line: string): string[] | undefined {
  const pattern = new RegExp(`^${route.replaceAll(/:\w+/g, '([^/]+)')}$`)
  return pattern.exec(line)?.slice(1)
}

/** Reports whether a call changes something. A query of D1 may only read. */
function isWrite({ method, path, body }: ApiCall): boolean {
  if (method === 'GET') return false
  if (!path.endsWith('/query')) return true
  return !/^\s*(SELECT|PRAGMA)\b/i.test((JSON.parse(body) as { sql: string }).sql)
}

/** Runs SQL as D1 does: several statements, of which the last one may return rows. */
function rowsOf(sqlite: DatabaseSync, sql: string, params: readonly string[]): object[] {
  if (/^\s*(SELECT|PRAGMA|INSERT|WITH)\b/i.test(sql) && !/;\s*\S/.test(sql))
    return sqlite.prepare(sql).all(...params)
  sqlite.exec(sql)
  return []
}

function foundOr<Item>(
  item: Item | undefined,
  describe: (item: Item) => unknown,
  code?: number,
): Reply {
  return item === undefined ? missing('not found', code) : found(describe(item))
}

const named =
  (query: URLSearchParams) =>
  ({ name }: { readonly name: string }): boolean =>
    !query.has('name') || query.getAll('name').includes(name)

function queueOf({ id, name, consumers }: Queue) {
  return {
    queue_id: id,
    queue_name: name,
    consumers: consumers.map(consumerOf),
    consumers_total_count: consumers.length,
    producers: [],
    producers_total_count: 0,
  }
}

function consumerOf({ id, body }: Queue['consumers'][number]) {
  return { ...body, consumer_id: id, script: body.script_name }
}

const databaseOf = ({ id, name }: Database) => ({ uuid: id, name, version: 'production' })

const secretsIn = (version: WorkerVersion | undefined): readonly Binding[] =>
  (version?.bindings ?? []).filter(({ type }) => type === 'secret_text')

const secretsOf = ({ versions }: Script) =>
  secretsIn(versions.at(-1)).map(({ name }) => ({ name, type: 'secret_text' }))

const settingsOf = ({ versions }: Script) => ({
  bindings: (versions.at(-1)?.bindings ?? []).map(({ text, ...binding }) => binding),
})

const serviceOf = (name: string) => ({
  id: name,
  default_environment: {
    environment: 'production',
    script: { id: name, last_deployed_from: 'wrangler' },
  },
})

const describeVersion = ({ id, bindings }: WorkerVersion) => ({
  id,
  number: 1,
  metadata: {
    created_on: '2026-11-23T00:00:00Z',
    source: 'wrangler',
    author_email: 'a@example.com',
  },
  annotations: {},
  resources: {
    script: { handlers: ['fetch'] },
    script_runtime: { usage_model: 'standard' },
    bindings: bindings.map(({ text, ...binding }) => binding),
  },
})

const versionsOf = ({ versions }: Script) => ({
  items: [...versions].reverse().map(describeVersion),
})

const deploymentsOf = ({ deployments }: Script) => ({
  deployments: deployments.map(({ id, version }) => ({
    id,
    source: 'wrangler',
    strategy: 'percentage',
    author_email: 'a@example.com',
    created_on: '2026-11-23T00:00:00Z',
    annotations: {},
    versions: [{ version_id: version, percentage: 100 }],
  })),
})
