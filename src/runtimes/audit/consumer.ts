/**
 * The consumer of the audit trail: stores events in the hash chain, each exactly once, signs
 * checkpoints, performs erasures, exports the chain, and deletes rows after their retention. It is the
 * same over a Cloudflare Queue and D1 and over a stream of Redis and a database of Node.
 */
import { parseSigningKeys } from '../../access/tokens/signing-keys.ts'
import type { GivenEvent } from '../../audit/blocks/block.ts'
import { writtenLine } from '../../audit/blocks/written-line.ts'
import { type CheckpointSealer, createCheckpointSealer } from '../../audit/chain.ts'
import { auditEventSchema } from '../../audit/event-schema.ts'
import type { ExportBucket } from '../../audit/r2/chain-export.ts'
import { appendParts } from '../../audit/sql/append-parts.ts'
import { insertAuditEvents } from '../../audit/sql/audit-chain.ts'
import type { ConsumerDatabase } from '../../audit/sql/database.ts'
import { type DeadLetter, keepDeadLetters } from '../../audit/sql/dead-letters.ts'
import type { Migration } from '../../audit/sql/dialect.ts'
import { DEFAULT_RETENTION_DAYS } from '../../audit/sql/retention.ts'
import { SchemaUnfinished, withSchema } from '../../audit/sql/schema.ts'
import { writtenEvent } from '../../audit/written-event.ts'
import type { Digest } from '../../crypto/sha256.ts'
import { Misconfigured } from '../../errors.ts'
import { carryOutErasures, endRetention, exportDue, type Upkeep } from './upkeep.ts'

/** Where a consumer stores what it reads. */
export interface AuditStores {
  readonly db: ConsumerDatabase
  /** Of this kind of database. The consumer applies the missing ones. */
  readonly migrations: readonly Migration[]
  /** Undefined: no export. */
  readonly bucket?: ExportBucket | undefined
  /** Days that events are kept, as a whole number. Default 90. */
  readonly retentionDays?: string | undefined
  /** Private JWK Set that signs checkpoints. Default: they are not signed. */
  readonly signingKeys?: string | undefined
  /** Default: that of Web Crypto. */
  readonly digest?: Digest | undefined
  /** Statements that one call of `store` and `bury` together may make. Default: no bound. */
  readonly maxStatements?: number | undefined
}

export interface Stored<Message> {
  /** Messages that are no events: a second delivery cannot change that. */
  readonly poison: readonly Message[]
  /** Messages for another call, because of `maxStatements`. The others are stored. */
  readonly rest: readonly Message[]
}

export interface AuditConsumer {
  /**
   * Stores the messages that are events, and performs the upkeep that is due. Rejects if the database fails; then some
   * events may be stored, and a repeated call stores each only once.
   */
  store<Message extends DeadLetter>(messages: readonly Message[]): Promise<Stored<Message>>
  /** Stores messages that are no events. Rejects if the database fails. */
  bury(messages: readonly DeadLetter[]): Promise<void>
  /** Seals the chain if a checkpoint is due, and performs the upkeep. */
  seal(): Promise<void>
  /** Does what {@link seal} does, exports rows that are not due yet, and ends retention. */
  maintain(nowMs: number): Promise<void>
}

/**
 * Minimum time between two upkeep runs after a batch, so that upkeep does not depend on the cron
 * trigger.
 */
const UPKEEP_INTERVAL_MS = 10_000
/** Action of the audit event that orders an erasure. */
const ERASURE_ORDER = 'audit.erase'
const DAY_MS = 86_400_000
/** Statements beside the migrations of a call: a failed append, the search for migrations, and their table. */
const BESIDE_MIGRATIONS = 20

/** Creates the consumer. Any number of consumers may work on one database. */
export function createAuditConsumer({
  db,
  migrations,
  bucket,
  retentionDays,
  signingKeys,
  digest,
  maxStatements,
}: AuditStores): AuditConsumer {
  const seal = sealerOf(signingKeys)
  let lookedAfterMs = 0

  const upkeepNow = (): Upkeep => ({
    ...{ db, bucket, seal, digest },
    nowMs: Date.now(),
  })
  const maxMigration = maxStatements && maxStatements - BESIDE_MIGRATIONS
  // One statement is for dead letters.
  const maxAppend = maxStatements && maxStatements - 1
  const inSchema = <Value>(work: () => Promise<Value>) =>
    withSchema(db, migrations, work, maxMigration)
  const append = (events: readonly GivenEvent[], options: Upkeep) =>
    inSchema(() => insertAuditEvents(db, events, { ...options, maxStatements: maxAppend }))

  /** Runs erasures and exports. A failure is logged, and the next run retries it. */
  async function lookAfter(upkeep: Upkeep, isDaily = false) {
    lookedAfterMs = upkeep.nowMs
    for (const [what, work] of [
      ['an erasure', () => carryOutErasures(upkeep)],
      ['the export', () => exportDue(upkeep, isDaily)],
    ] as const) {
      await inSchema(work).catch((error: unknown) =>
        console.error(`audit: ${what} failed (${nameOf(error)}), and is tried again`),
      )
    }
  }

  async function sealAndLookAfter(isDaily: boolean): Promise<Upkeep> {
    const upkeep = upkeepNow()
    await append([], upkeep)
    await lookAfter(upkeep, isDaily)
    return upkeep
  }

  /** The next run continues with the schema. */
  async function unlessUnfinished(work: () => Promise<unknown>) {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof SchemaUnfinished)) throw error
    }
  }

  return {
    async store(messages) {
      const events: GivenEvent[] = []
      const poison: (typeof messages)[number][] = []
      const ids = new Map<(typeof messages)[number], string>()
      for (const message of messages) {
        const event = eventOf(message.body)
        if (event === undefined) poison.push(message)
        else {
          events.push(event)
          ids.set(message, event.id)
        }
      }
      const upkeep = upkeepNow()
      const parts = appendParts(events)
      const now = maxStatements === undefined ? parts : parts.slice(0, 1)
      let statements = 0
      try {
        for (const part of now) statements += await append(part, upkeep)
      } catch (error) {
        if (error instanceof SchemaUnfinished) return { poison: [], rest: messages }
        throw error
      }
      const later = new Set(parts.slice(now.length).flatMap((part) => part.map(({ id }) => id)))
      const rest = messages.filter((message) => later.has(ids.get(message) ?? ''))
      const isOrdered = events.some(({ change }) => change?.action === ERASURE_ORDER)
      const isDue = isOrdered || upkeep.nowMs - lookedAfterMs >= UPKEEP_INTERVAL_MS
      // Otherwise the next call or the schedule does it.
      const hasRoom = maxStatements === undefined || statements <= maxStatements / 2
      if (isDue && hasRoom) await lookAfter(upkeep)
      return { poison, rest }
    },
    bury: (messages) => inSchema(() => keepDeadLetters(db, messages)),
    seal: () => unlessUnfinished(() => sealAndLookAfter(false)),
    maintain: (nowMs) =>
      unlessUnfinished(async () => {
        const upkeep = await sealAndLookAfter(true)
        const days = Number(retentionDays ?? DEFAULT_RETENTION_DAYS)
        if (!Number.isInteger(days) || days < 1)
          throw new Error(`RETENTION_DAYS must be a whole number of days, at least 1`)
        await endRetention(upkeep, nowMs - days * DAY_MS)
      }),
  }
}

/**
 * Returns the sealer for a JWK Set. Invalid keys leave checkpoints unsigned instead of blocking
 * events.
 */
function sealerOf(text: string | undefined): CheckpointSealer {
  const unsigned = createCheckpointSealer([])
  let signed = unsigned
  try {
    if (text !== undefined) signed = createCheckpointSealer(parseSigningKeys(JSON.parse(text)))
  } catch {
    console.error('audit: AUDIT_SIGNING_KEYS is not a private JWK Set; checkpoints are not signed')
  }
  return (...statement) =>
    signed(...statement).catch(() => {
      console.error('audit: a key of AUDIT_SIGNING_KEYS cannot sign')
      return unsigned(...statement)
    })
}

/** Returns text that is safe to log. Error messages of D1 and R2 may contain any data. */
function nameOf(error: unknown): string {
  if (error instanceof Misconfigured) return error.message
  return error instanceof Error ? error.name : typeof error
}

/** Returns the event of a message, or undefined if the message is not an event. */
function eventOf(body: unknown): GivenEvent | undefined {
  const written = typeof body === 'string' ? writtenLine(body) : undefined
  if (written !== undefined) return written
  try {
    const value: unknown = typeof body === 'string' ? JSON.parse(body) : body
    return writtenEvent(value) ?? auditEventSchema.safeParse(value).data
  } catch {
    return undefined
  }
}
