/** Reads recorded audit events, and the roles of callers, for `portcullis policy replay`. */

import { createReadStream } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import * as z from 'zod/mini'
import { eventOfLine } from '../../src/audit/blocks/line.ts'
import { DECISIONS } from '../../src/audit/event-schema.ts'
import { STREAM_ENDED } from '../../src/audit/reason.ts'
import { Failure, usage } from '../failure.ts'
import type { Gateway } from '../gateway.ts'
import { jsonIn } from '../json.ts'
import type { EventPage } from '../tail.ts'
import { readText } from '../text-file.ts'
import type { Grants, RecordedEvent } from './replay-decide.ts'

export interface ReplayedEvent extends RecordedEvent {
  readonly requestId: string
  readonly time: string
}

/** A line: an event, something else that an export contains, or no event at all. */
export type ReplayLine = ReplayedEvent | 'skipped' | 'malformed'

/** Larger than any event of the gateway, with the columns of its row. */
const MAX_LINE_CHARACTERS = 131_072
const PAGE_EVENTS = 200

const nullable = z.nullable(z.string())
const decided = {
  method: z.string(),
  route: nullable,
  decision: z.enum(DECISIONS),
  reason: z.string(),
  address: z.string(),
}
const caller = { issuer: nullable, subject: nullable, client: nullable }
const grantsSchema = z.object({ roles: z.array(z.string()), scopes: z.array(z.string()) })
const eventSchema = z.object({
  ...decided,
  host: z.optional(z.string()),
  origin: z.optional(z.string()),
  requestId: z.string(),
  time: z.string(),
  actor: z.object(caller),
  grants: z.optional(grantsSchema),
})
/** A row of the export of the audit Worker. */
const rowSchema = z.object({
  event: z.object({
    ...decided,
    ...caller,
    // Columns of a later version.
    host: z.nullish(z.string()),
    origin: z.nullish(z.string()),
    grants: z.nullish(z.string()),
    request_id: z.string(),
    time_ms: z.number(),
  }),
})
/** An event of a block. Its block and the checkpoints have lines of their own. */
const entrySchema = z.object({ entry: z.object({ text: z.string() }) })
const other = z.record(z.string(), z.unknown())
const otherSchema = z.union([z.object({ checkpoint: other }), z.object({ block: other })])

/** Parses a line of `audit tail --json`, or of an export of the audit Worker. */
export function parseLine(line: string): ReplayLine {
  let value: unknown
  try {
    // Removes a byte order mark, too.
    value = JSON.parse(line.trim())
    const entry = entrySchema.safeParse(value).data?.entry
    if (entry !== undefined) value = eventOfLine(entry.text)
  } catch {
    return 'malformed'
  }
  const event = eventSchema.safeParse(value)
  if (event.success) return isAboutEnd(event.data) ? 'skipped' : event.data
  const row = rowSchema.safeParse(value)
  if (!row.success) return otherSchema.safeParse(value).success ? 'skipped' : 'malformed'
  const { issuer, subject, client, request_id: requestId, time_ms, ...columns } = row.data.event
  if (isAboutEnd(columns)) return 'skipped'
  const { host, origin, grants: text, ...rest } = columns
  const grants = grantsIn(text)
  const time = Number.isFinite(new Date(time_ms).getTime()) ? new Date(time_ms).toISOString() : ''
  return {
    ...rest,
    ...(typeof host === 'string' && { host }),
    ...(typeof origin === 'string' && { origin }),
    ...(grants !== undefined && { grants }),
    requestId,
    time,
    actor: { issuer, subject, client },
  }
}

const grantsIn = (text: string | null | undefined): Grants | undefined =>
  grantsSchema.safeParse(jsonIn(text ?? '')).data

/** Of an open stream, whose request has an event of its own. */
const isAboutEnd = ({ reason }: { readonly reason: string }) => reason.startsWith(STREAM_ENDED)

/** Yields the events of a file, or of standard input for `-`, one line at a time. */
export async function* eventsOfFile(file: string): AsyncGenerator<readonly ReplayLine[]> {
  const stream = file === '-' ? process.stdin : createReadStream(file)
  stream.setEncoding('utf8')
  try {
    let rest = ''
    let isTooLong = false
    for await (const chunk of stream) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      const [first, ...others] = lines
      // The beginning of the first line was dropped.
      const complete = isTooLong && first !== undefined ? others : lines
      const counted = isTooLong && first !== undefined ? (['malformed'] as const) : []
      if (lines.length > 0) isTooLong = false
      if (rest.length > MAX_LINE_CHARACTERS || isTooLong) {
        isTooLong = true
        rest = ''
      }
      yield [...counted, ...complete.filter((line) => line.trim() !== '').map(parseLine)]
    }
    if (isTooLong) yield ['malformed']
    else if (rest.trim() !== '') yield [parseLine(rest)]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw usage(`--file: ${file} cannot be read (${code})`)
  }
}

/**
 * Yields the events of the audit trail since a time, newest first, without those of the requests that
 * this command itself sends.
 */
export async function* eventsOfGateway(
  gateway: Pick<Gateway, 'get' | 'requestIds'>,
  since: string,
): AsyncGenerator<readonly ReplayLine[]> {
  let cursor: string | undefined
  do {
    const page = await pageOf(gateway, { since, limit: PAGE_EVENTS, cursor })
    yield page.events
      .map((event) => eventSchema.safeParse(event).data)
      .filter((event) => event === undefined || !gateway.requestIds.has(event.requestId))
      .map((event) => (event !== undefined && isAboutEnd(event) ? 'skipped' : event) ?? 'malformed')
    cursor = page.cursor
  } while (cursor !== undefined)
}

/** Waits if the limit of operators' calls is used up: a long trail has thousands of pages. */
async function pageOf(
  gateway: Pick<Gateway, 'get'>,
  query: Parameters<Gateway['get']>[1],
): Promise<EventPage> {
  for (;;) {
    try {
      return await gateway.get<EventPage>('/audit', query)
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'rate_limited') throw error
      await pause((error.retryAfterSeconds ?? 1) * 1_000)
    }
  }
}

const names = z.array(z.string())
const callersSchema = z.array(
  z.strictObject({
    subject: z.string(),
    issuer: z.optional(z.string()),
    client: z.optional(z.string()),
    roles: names,
    scopes: z.optional(names),
  }),
)

export type FindGrants = (actor: RecordedEvent['actor']) => Grants | undefined

/** Reads the roles and scopes of callers. The first entry that matches an event counts. */
export function readCallers(file: string | undefined): FindGrants {
  if (file === undefined) return () => undefined
  const bySubject = new Map<string, z.infer<typeof callersSchema>>()
  for (const entry of callersIn(file)) {
    const entries = bySubject.get(entry.subject) ?? []
    entries.push(entry)
    bySubject.set(entry.subject, entries)
  }
  return ({ subject, issuer, client }) => {
    const found = bySubject
      .get(subject ?? '')
      ?.find(
        (entry) =>
          (entry.issuer ?? issuer) === issuer &&
          (entry.client === undefined || entry.client === client),
      )
    return found && { roles: found.roles, scopes: found.scopes ?? [] }
  }
}

function callersIn(file: string): z.infer<typeof callersSchema> {
  let text: string
  try {
    text = readText(file)
  } catch {
    throw usage(`--callers: ${file} cannot be read`)
  }
  try {
    const { data, error } = callersSchema.safeParse(JSON.parse(text))
    if (data !== undefined) return data
    throw usage(
      `--callers: ${file}: entry ${error.issues[0]?.path.join('.')} is not valid; an entry has ` +
        '"subject" and "roles", and may have "issuer", "client" and "scopes"',
    )
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw usage(
      `--callers: ${file} is not JSON; it must be [{ "subject": "alice", "roles": ["reader"] }]`,
    )
  }
}
