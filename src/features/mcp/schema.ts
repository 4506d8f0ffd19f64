/** Schema of the options of `mcpServer()`. */
import * as z from 'zod/mini'
import { modeSchema } from '../../validators/mode.ts'
import { PERMISSION } from '../../validators/names.ts'
import { relationDemandSchema } from '../../validators/relations.ts'
import { text, wholeNumber, withShorthand } from '../../validators/schema-parts.ts'
import { dropsUnknownKeys, zodSchema } from '../../validators/strictness.ts'

/**
 * Methods and notifications that clients of the protocol send, in the revisions up to 2026-07-28.
 * Those that use a tool, a prompt or a resource are checked for it.
 */
export const STANDARD_METHODS = [
  ...['initialize', 'ping', 'server/discover', 'logging/setLevel', 'completion/complete'],
  ...['notifications/initialized', 'notifications/cancelled', 'notifications/progress'],
  ...['notifications/roots/list_changed', 'subscriptions/listen'],
  ...['tools/list', 'tools/call', 'prompts/list', 'prompts/get'],
  ...['resources/list', 'resources/templates/list', 'resources/read'],
  ...['resources/subscribe', 'resources/unsubscribe'],
] as const

/** The methods of {@link STANDARD_METHODS} that ended with the revision 2026-07-28. */
export const METHODS_WITH_SESSIONS: ReadonlySet<string> = new Set([
  ...['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'],
])

/** A SHA-256 of a tool's definition. */
const DEFINITION_HASH = /^sha256-[\w-]{43}$/

const permission = z.optional(
  z.string().check(z.regex(PERMISSION, 'must be a permission such as orders:read')),
)
const strictSchema = zodSchema.check(
  z.refine((schema) => !dropsUnknownKeys(schema), {
    error:
      'drops unknown keys, which would still reach the server; ' +
      'use z.strictObject, or z.looseObject to allow them',
  }),
)
const name = text(256)
const uri = text(2_048)
const table = <Key extends z.core.$ZodRecordKey, Entry extends z.core.$ZodType>(
  key: Key,
  entry: Entry,
) => z.optional(z.record(key, withShorthand(true, {}, entry)))

const isAny = z.literal('any')

/** The part of the options that is not a field of a route. */
export const mcpSchema = z.strictObject({
  path: z
    .string()
    .check(z.regex(/^\/[^:*{}?#]*$/, 'must be a path without parameters, such as /mcp')),
  tools: table(
    name,
    z.strictObject({
      permission,
      arguments: z.optional(
        z.pipe(
          z.transform((value) => value),
          z.custom<unknown>(
            (value) => isAny.safeParse(value).success || strictSchema.safeParse(value).success,
            "must be 'any', or a schema of z.strictObject or z.looseObject",
          ),
        ),
      ),
      relation: z.optional(relationDemandSchema),
      limits: z.optional(z.array(z.string())),
      definition: z.optional(
        z
          .string()
          .check(z.regex(DEFINITION_HASH, 'must be sha256- and 43 characters of base64url')),
      ),
    }),
  ),
  resources: table(uri, z.strictObject({ permission })),
  prompts: table(name, z.strictObject({ permission, arguments: z.optional(strictSchema) })),
  methods: table(name, z.strictObject({ permission, params: z.optional(strictSchema) })),
  scopes: z.optional(
    z.array(
      z.string().check(z.regex(/^[!#-[\]-~]+$/, 'must be a scope: visible ASCII without quotes')),
    ),
  ),
  versions: z.optional(
    z
      .array(z.string().check(z.regex(/^\d{4}-\d\d-\d\d$/, 'must be a date such as 2025-11-25')))
      .check(z.minLength(1)),
  ),
  definitions: z.optional(modeSchema),
  maxMessageBytes: z.optional(wholeNumber(1_024, 16_777_216)),
})
