/** The audit trail of a process on Node: its database, its consumer and its spool run in a thread. */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { QueueBinding } from '../../../audit/queue/audit-queue.ts'
import { createStreamQueue } from '../../../audit/redis/stream.ts'
import { DatabaseError, type Result } from '../../../audit/sql/database.ts'
import { Misconfigured } from '../../../errors.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { auditPlaces } from '../environment/audit-environment.ts'
import { type RunStatements, trailDatabase } from './database.ts'
import { dialectOf } from './dialect-of.ts'
import { spoolingQueue } from './spool/spooling-queue.ts'
import type { ThreadData, ThreadMessage, ThreadRequest } from './thread-messages.ts'

/** The consumer may need one transaction for what it has read. */
const CLOSE_MS = 5_000
/** Of a response, because the disk of a busy machine may take long. It takes about a millisecond. */
const SPOOL_WAIT_MS = 1_000
/** After the thread has ended unexpectedly. */
const RESTART_MS = 1_000
/**
 * Of the thread. Events are garbage once they are stored, so a larger one only takes memory. V8 ignores this limit while
 * `--max-semi-space-size` is set, see `boundHeap`.
 */
const YOUNG_GENERATION_MB = 6

/** The source in this repository, and the module that the package contains. */
const THREAD = import.meta.url.endsWith('.ts') ? './thread.ts' : '../node/audit-thread.js'

export type AuditTrail = ReturnType<typeof createAuditTrail>

interface Call {
  resolve(results: readonly Result[]): void
  reject(error: unknown): void
}

/** Creates the trail. Nothing is opened before `open`, `start` or a call to the database. */
export function createAuditTrail(variables: ThreadData['variables']) {
  const { hasQueue, database, spool } = auditPlaces(variables)
  const hasThread = (database ?? spool) !== undefined
  const calls = new Map<number, Call>()
  let lastId = 0
  let spooled = 0
  let thread: Worker | undefined
  let queue: QueueBinding | undefined
  let isConsuming = false
  let isClosing = false

  const send = (request: ThreadRequest) => running().postMessage(request)

  function running(): Worker {
    if (isClosing) throw new Error('the audit trail is closed')
    thread ??= begin()
    return thread
  }

  function begin(): Worker {
    const workerData: ThreadData = { database, spool, variables }
    const worker = new Worker(fileURLToPath(new URL(THREAD, import.meta.url).href), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      // `node:sqlite` is experimental in Node 22.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    let cause: unknown = new Error('the thread of the audit trail has ended')
    worker.on('message', (message: ThreadMessage) => {
      if (message === 'opened') {
        // Only the server keeps the process alive.
        worker.unref()
        worker.emit('opened')
        return
      }
      if ('level' in message) {
        console[message.level](message.text)
        return
      }
      const call = calls.get(message.id)
      calls.delete(message.id)
      if ('error' in message) call?.reject(errorOf(message))
      else call?.resolve(message.results)
    })
    worker.on('error', (error) => {
      cause = error
    })
    worker.on('exit', () => {
      thread = undefined
      for (const call of calls.values()) call.reject(cause)
      calls.clear()
      if (isClosing || !isConsuming) return
      console.error('audit: the thread of the audit trail has ended, and is started again')
      setTimeout(() => isClosing || send('consume'), RESTART_MS).unref()
    })
    return worker
  }

  function call(requestOf: (id: number) => ThreadRequest): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      lastId += 1
      send(requestOf(lastId))
      calls.set(lastId, { resolve, reject })
    })
  }

  const runStatements: RunStatements = (statements) => call((id) => ({ id, statements }))

  async function append(events: readonly string[]): Promise<void> {
    await call((id) => ({ id, events }))
    spooled += events.length
  }

  async function sendBatch(messages: Parameters<QueueBinding['sendBatch']>[0]) {
    if (queue === undefined) throw new Error('the queue is not connected')
    await queue.sendBatch(messages)
  }

  return {
    /** The bindings of a gateway; see `GatewayEnv`. */
    bindings: {
      AUDIT_DB:
        database === undefined
          ? undefined
          : trailDatabase({ run: runStatements, dialect: dialectOf(database) }),
      AUDIT_QUEUE: hasQueue ? { sendBatch } : undefined,
    },
    /** Sets the connection of the queue. */
    connect(redis: RedisConnection): void {
      const stream = createStreamQueue(redis)
      queue = spool === undefined ? stream : spoolingQueue({ queue: stream, spool: append })
    },
    /** How long a response may wait for its event, in milliseconds. Undefined: the default of the sink. */
    maxWaitMs: spool && SPOOL_WAIT_MS,
    /** Returns the number of events that went to the spool so far. */
    spooled: (): number => spooled,
    /** Opens the database and the spool. Throws `Misconfigured` if there is no database then. */
    async open(): Promise<void> {
      if (!hasThread) return
      try {
        await once(running(), 'opened')
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown error'
        // A spool that does not open is no mistake: its directory may become writable.
        const names = ['AUDIT_DATABASE', 'AUDIT_EXPORT_DIR', 'AUDIT_SPOOL']
        const given = names.filter((name) => variables[name] !== undefined).join(', ')
        throw new Misconfigured('The environment', [
          {
            code: 'invalid_value',
            path: [names.find((name) => variables[name] !== undefined) ?? ''],
            message: `${given}: ${reason}`,
          },
        ])
      }
    },
    /** Begins to consume the stream, and to send what the spool contains. */
    start(): void {
      if (!hasThread) return
      isConsuming = true
      send('consume')
    },
    /** Sends the spool and stores what is in the stream, for at most 5 s, and closes both. */
    async close(): Promise<void> {
      const worker = thread
      if (worker === undefined) {
        isClosing = true
        return
      }
      send('close')
      isClosing = true
      const timer = setTimeout(() => worker.terminate(), CLOSE_MS)
      await once(worker, 'exit').catch(() => {})
      clearTimeout(timer)
    },
  }
}

const errorOf = ({ error, fault }: Extract<ThreadMessage, { readonly error: unknown }>): unknown =>
  fault === undefined ? error : new DatabaseError(fault, { cause: error })
