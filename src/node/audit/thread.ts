/**
 * The thread of the audit trail: it has the database, of which SQLite blocks while it works, and
 * computes the chain. A module for `node:worker_threads`; `trail.ts` starts it.
 */
import { hostname } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { createStreamReader } from '../../audit/redis/stream.ts'
import { createRedisRest } from '../../redis/rest.ts'
import type { AuditEnv } from '../../workers/audit-worker.ts'
import { connectResp } from '../redis/resp.ts'
import { consumeAuditStream } from './consumer.ts'
import { databaseOver, type RunStatements } from './database.ts'
import { directoryBucket } from './directory.ts'
import { openDatabase } from './open-database.ts'
import type { ThreadData, ThreadMessage, ThreadRequest } from './thread-messages.ts'

/** No request waits for these calls. */
const REDIS_TIMEOUT_MS = 5_000

const port = parentPort
if (port === null) throw new Error('this module is for a worker thread')
const { database: address, variables } = workerData as ThreadData
const opening = openDatabase(address)
const run: RunStatements = async (statements) => (await opening).run(statements)
const env = environmentOf(variables)
const closing = new AbortController()
let consumed: Promise<void> | undefined
const post = (message: ThreadMessage) => port.postMessage(message)

function environmentOf({
  AUDIT_EXPORT_DIR,
  RETENTION_DAYS,
  AUDIT_SIGNING_KEYS,
}: ThreadData['variables']): AuditEnv {
  return {
    AUDIT_DB: databaseOver(run),
    ...(AUDIT_EXPORT_DIR !== undefined && { AUDIT_EXPORT: directoryBucket(AUDIT_EXPORT_DIR) }),
    ...(RETENTION_DAYS !== undefined && { RETENTION_DAYS }),
    ...(AUDIT_SIGNING_KEYS !== undefined && { AUDIT_SIGNING_KEYS }),
  }
}

async function consume(): Promise<void> {
  const { redis, close } = connectRedis()
  const stream = createStreamReader(redis, `${hostname()}:${process.pid}`)
  await consumeAuditStream(stream, env, closing.signal)
  close()
}

function connectRedis() {
  const { REDIS_URL, REDIS_PREFIX, UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN } = variables
  const shared = { keyPrefix: REDIS_PREFIX, timeoutMs: REDIS_TIMEOUT_MS }
  if (REDIS_URL !== undefined) {
    const { connect, close } = connectResp({ url: REDIS_URL, ...shared })
    return { redis: connect({ timeoutMs: REDIS_TIMEOUT_MS }), close }
  }
  const rest = { url: UPSTASH_REDIS_REST_URL ?? '', token: UPSTASH_REDIS_REST_TOKEN ?? '' }
  return { redis: createRedisRest({ ...rest, ...shared }), close() {} }
}

async function close(): Promise<void> {
  closing.abort()
  await consumed
  await (await opening).close()
  port?.close()
}

port.on('message', (request: ThreadRequest) => {
  if (request === 'consume') consumed ??= consume()
  else if (request === 'close') close()
  else {
    const { id, statements } = request
    run(statements).then(
      (results) => post({ id, results }),
      (error) => post({ id, error }),
    )
  }
})
// A rejection is an error of the thread.
opening.then(() => post('opened'))
