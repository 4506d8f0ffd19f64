/** The variables of the audit trail on Node. */
import * as z from 'zod/mini'
import { last, superRefine } from '../../../validators/checks.ts'
import { signingKeys } from '../../../validators/signing-jwk.ts'
import { json } from '../../../validators/variables.ts'

const SQLITE = 'sqlite:'
const POSTGRES = /^postgres(ql)?:$/
/** Modes that verify the certificate of the server, or that do not encrypt. */
const SSL_MODES: readonly (string | null)[] = [null, 'disable', 'verify-full']

/** Returns the path of an SQLite database, or undefined if the database is another one. */
export function sqlitePath(database: string): string | undefined {
  return database.startsWith(SQLITE) ? database.slice(SQLITE.length) : undefined
}

function isAddress(value: string): boolean {
  const path = sqlitePath(value)
  if (path !== undefined) return path !== ''
  const url = URL.parse(value)
  if (url === null || !POSTGRES.test(url.protocol)) return false
  const host = url.searchParams.get('host') ?? url.hostname
  return host !== '' && url.pathname.length > 1
}

const BYTES_PER_MIB = 1_048_576
const DEFAULT_SPOOL_MIB = 256
/** As `AUDIT_SPOOL`. */
export const NO_SPOOL = 'off'

const NO_ADDRESS =
  'must be sqlite: and the path of a file, such as sqlite:/var/lib/portcullis/audit.db, or ' +
  'the URL of a PostgreSQL database, such as postgres://user:password@host/database'

const hasSslMode = (value: string): boolean =>
  SSL_MODES.includes(URL.parse(value)?.searchParams.get('sslmode') ?? null)

export const auditVariables = {
  AUDIT_DATABASE: z.optional(
    z.string().check(
      superRefine((value, { addIssue }) => {
        if (!isAddress(value)) addIssue(last(NO_ADDRESS))
      }),
      z.refine(hasSslMode, 'sslmode must be verify-full or disable'),
    ),
  ),
  AUDIT_STREAM: z.optional(z.literal('redis', 'must be redis')),
  AUDIT_EXPORT_DIR: z.optional(z.string()),
  AUDIT_SPOOL: z.optional(z.string()),
  AUDIT_SPOOL_MAX_MIB: z.optional(
    z.string().check(z.regex(/^[1-9]\d{0,5}$/, 'must be a whole number of MiB, at least 1')),
  ),
  RETENTION_DAYS: z.optional(
    z.string().check(z.regex(/^[1-9]\d{0,5}$/, 'must be a whole number of days, at least 1')),
  ),
  AUDIT_SIGNING_KEYS: z.optional(z.pipe(json, signingKeys)),
}

const schema = z.object(auditVariables)

/** A directory for events that wait until Redis works. */
export interface SpoolPlace {
  readonly directory: string
  readonly maxBytes: number
}

/** Reads where the audit trail on Node is stored, from valid variables. Returns no places for variables with mistakes. */
export function auditPlaces(variables: unknown) {
  const settings = schema.safeParse(variables).data ?? {}
  const { AUDIT_DATABASE: database, AUDIT_STREAM } = settings
  const hasQueue = (database ?? AUDIT_STREAM) !== undefined
  return {
    /** Whether events are sent to the stream of Redis. */
    hasQueue,
    /** The address of the database. Undefined: another process consumes the stream. */
    database,
    /** Undefined: while Redis fails, events wait in memory. */
    spool: hasQueue ? spoolOf(settings) : undefined,
  }
}

/** The default is beside the file of SQLite, which is on a disk that the gateway writes. */
function spoolOf({
  AUDIT_DATABASE = '',
  AUDIT_SPOOL,
  AUDIT_SPOOL_MAX_MIB,
}: z.output<typeof schema>): SpoolPlace | undefined {
  const file = sqlitePath(AUDIT_DATABASE)
  const directory = AUDIT_SPOOL ?? (file && `${file}.spool`)
  if (directory === undefined || directory === NO_SPOOL) return undefined
  return { directory, maxBytes: Number(AUDIT_SPOOL_MAX_MIB ?? DEFAULT_SPOOL_MIB) * BYTES_PER_MIB }
}
