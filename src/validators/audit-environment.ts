/** The variables of the audit trail on Node. */
import * as z from 'zod/mini'
import { signingKeys } from './signing-jwk.ts'
import { json } from './variables.ts'

const SQLITE = 'sqlite:'

export const auditVariables = {
  AUDIT_DATABASE: z.optional(
    z
      .string()
      .check(
        z.refine(
          (value) => value.startsWith(SQLITE) && value.length > SQLITE.length,
          'must be sqlite: and the path of a file, such as sqlite:/var/lib/portcullis/audit.db',
        ),
      ),
  ),
  AUDIT_STREAM: z.optional(z.literal('redis', 'must be redis')),
  AUDIT_EXPORT_DIR: z.optional(z.string()),
  RETENTION_DAYS: z.optional(
    z.string().check(z.regex(/^[1-9]\d{0,5}$/, 'must be a whole number of days, at least 1')),
  ),
  AUDIT_SIGNING_KEYS: z.optional(z.pipe(json, signingKeys)),
}

const schema = z.object(auditVariables)

/** Where the audit trail on Node is stored. */
export interface AuditPlaces {
  /** Whether events are sent to the stream of Redis. */
  readonly hasQueue: boolean
  /** The path of the database. Undefined: another process consumes the stream. */
  readonly path: string | undefined
}

/** Reads the places of valid variables. Returns no places for variables with mistakes. */
export function auditPlaces(variables: unknown): AuditPlaces {
  const { AUDIT_DATABASE, AUDIT_STREAM } = schema.safeParse(variables).data ?? {}
  return {
    hasQueue: (AUDIT_DATABASE ?? AUDIT_STREAM) !== undefined,
    path: AUDIT_DATABASE?.slice(SQLITE.length),
  }
}
