/**
 * The thread of the audit trail: it has the database and the spool, of which SQLite blocks while it
 * works, and computes the chain. A module for `node:worker_threads`; `trail.ts` starts it.
 */
import { hostname } from 'node:os'
import { format } from 'node:util'
import { parentPort, workerData } from 'node:worker_threads'
import { createStreamQueue, createStreamReader } from '../../../audit/redis/stream.ts'
import { DatabaseError, type Result } from '../../../audit/sql/database.ts'
import { createRedisRest } from '../../../redis/rest.ts'
import { createAuditConsumer } from '../../audit/consumer.ts'
import { redisNodeSettings } from '../environment/redis-environment.ts'
import { connectResp } from '../redis/resp.ts'
import { consumeAuditStream } from './consumer.ts'
import { consumerDatabase, type OpenDatabase, type RunStatements } from './database.ts'
import { dialectOf, migrationsOf } from './dialect-of.ts'
import { sha256Now } from './digest.ts'
import { directoryBucket } from './directory.ts'
import { openDatabase } from './open-database.ts'
import { openSpool } from './spool/spool.ts'
import {
  LEVELS,
  type ThreadData,
  type ThreadMessage,
  type ThreadRequest,
} from './thread-messages.ts'

/** No request waits for these calls. */
const REDIS_TIMEOUT_MS = 5_000
/** A part of the time in which the thread must end. */
const SPOOL_TIMEOUT_MS = 2_000
/** Half of the stream is left for the events of requests. */
const MAX_STREAM_ENTRIES = 50_000

const port = parentPort
if (port === null) throw new Error('this module is for a worker thread')
const { database: address, spool: place, variables } = workerData as ThreadData
const opening = address === undefined ? undefined : openDatabase(address)
const spool = place && openSpool({ ...place, connect: connectStream })
async function opened(): Promise<OpenDatabase> {
  const database = await opening
  if (database === undefined) throw new Error('there is no audit database')
  return database
}
const run: RunStatements = async (statements) => (await opened()).run(statements)
const consumer = createConsumer()
const closing = new AbortController()
let consumed: Promise<void> | undefined
const post = (message: ThreadMessage) => port.postMessage(message)
// What a thread writes to stderr has no level: a log would have each text as an error.
for (const level of LEVELS) console[level] = (...values) => post({ level, text: format(...values) })

function createConsumer() {
  const { AUDIT_EXPORT_DIR, RETENTION_DAYS, AUDIT_SIGNING_KEYS } = variables
  return createAuditConsumer({
    db: consumerDatabase({
      run,
      migrate: async (statements) => (await opened()).migrate(statements),
      dialect: dialectOf(address),
      scrub: async () => (await (await opening)?.scrub?.()) ?? true,
    }),
    migrations: migrationsOf(address),
    bucket: AUDIT_EXPORT_DIR === undefined ? undefined : directoryBucket(AUDIT_EXPORT_DIR),
    retentionDays: RETENTION_DAYS,
    signingKeys: AUDIT_SIGNING_KEYS,
    digest: sha256Now,
  })
}

async function consume(): Promise<void> {
  const { redis, close } = connectRedis(REDIS_TIMEOUT_MS)
  const stream = createStreamReader(redis, `${hostname()}:${process.pid}`)
  await consumeAuditStream(stream, consumer, closing.signal)
  close()
}

function connectStream() {
  const { redis, close } = connectRedis(SPOOL_TIMEOUT_MS)
  return { queue: createStreamQueue(redis, MAX_STREAM_ENTRIES), close }
}

function connectRedis(timeoutMs: number) {
  const { REDIS_URL, REDIS_PREFIX, UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN } = variables
  const shared = { keyPrefix: REDIS_PREFIX, timeoutMs }
  if (REDIS_URL !== undefined) {
    const { connect, close } = connectResp({
      ...redisNodeSettings(variables),
      ...shared,
      url: REDIS_URL,
      isBackground: true,
    })
    return { redis: connect({ timeoutMs }), close }
  }
  const rest = { url: UPSTASH_REDIS_REST_URL ?? '', token: UPSTASH_REDIS_REST_TOKEN ?? '' }
  return { redis: createRedisRest({ ...rest, ...shared }), close() {} }
}

async function close(): Promise<void> {
  // First, so that the consumer stores what the spool sends.
  await spool?.close()
  closing.abort()
  await consumed
  await (await opening)?.close()
  port?.close()
}

function start(): void {
  spool?.start()
  if (opening !== undefined) consumed ??= consume()
}

function answer(id: number, work: Promise<readonly Result[]>): void {
  work.then(
    (results) => post({ id, results }),
    (error) => post({ id, error, fault: error instanceof DatabaseError ? error.fault : undefined }),
  )
}

async function append(events: readonly string[]): Promise<readonly Result[]> {
  if (spool === undefined) throw new Error('there is no spool')
  await spool.append(events)
  return []
}

port.on('message', (request: ThreadRequest) => {
  if (request === 'consume') start()
  else if (request === 'close') close()
  else if ('events' in request) answer(request.id, append(request.events))
  else answer(request.id, run(request.statements))
})
// A rejection is an error of the thread.
Promise.resolve(opening).then(() => post('opened'))
