/** Schema of a route's `inspect` in a policy, and of the middleware's options. */

// Imported by name: a property access on the namespace `z.core` would bundle all of zod.
import { $ZodType } from 'zod/v4/core'
import { featureSchema } from './feature.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION } from './names.ts'
import { wholeNumber } from './schema-parts.ts'
import { dropsUnknownKeys } from './strictness.ts'
import * as z from './zod.ts'

/** MCP's method that calls a tool; `params.name` is the tool's name. */
export const TOOLS_CALL = 'tools/call'

const permission = z.optional(
  z.string().check(z.regex(PERMISSION, 'must be a permission such as orders:read')),
)
const strictSchema = z.optional(
  z
    .custom<z.core.$ZodType>((value) => value instanceof $ZodType, {
      error: 'must be a zod schema',
      abort: true,
    })
    .check(
      z.refine((schema) => !dropsUnknownKeys(schema), {
        error:
          'drops unknown keys, which would still reach the origin; ' +
          'use z.strictObject, or z.looseObject to allow them',
      }),
    ),
)
/** Longer than any name in use. */
const calledName = z.string().check(z.minLength(1), z.maxLength(256))

/**
 * Accepts an entry, or `true` for one without conditions. Not a union, because its errors would not
 * name the field.
 */
const entry = <Schema extends z.core.$ZodType>(schema: Schema) =>
  z.pipe(
    z.transform((value) => (value === true ? {} : value)),
    schema,
  )

const jsonRpcSchema = z
  .strictObject({
    methods: z.record(calledName, entry(z.strictObject({ permission, params: strictSchema }))),
    tools: z.optional(
      z.record(calledName, entry(z.strictObject({ permission, arguments: strictSchema }))),
    ),
    maxBatch: z.optional(wholeNumber(1, 50)),
  })
  .check(
    z.refine(({ methods, tools }) => Object.hasOwn(methods, TOOLS_CALL) === (tools !== undefined), {
      error: `requires both tools and the method ${TOOLS_CALL}, or neither`,
    }),
  )

const mode = z.optional(modeSchema)

/** A route's `inspect`. Does NOT check the route: `jsonRpc` requires one with a body. */
export const inspectSchema = z.strictObject({
  mode,
  maxDepth: z.optional(wholeNumber(1, 100)),
  maxNames: z.optional(wholeNumber(1, 1_000_000)),
  maxStringChars: z.optional(wholeNumber(1, 104_857_600)),
  repeatable: z.optional(z.array(z.string())),
  // Parses `false` as undefined. Not a union, because its errors would not name the field.
  signatures: z.optional(
    z.pipe(
      z.transform((value) => (value === false ? undefined : value)),
      z.optional(featureSchema('signatures', 'signatures')),
    ),
  ),
  jsonRpc: z.optional(jsonRpcSchema),
})

type Entries = Readonly<Record<string, true | { readonly permission?: string }>>

/**
 * Reports whether any method or tool requires a permission, which anonymous callers cannot have.
 */
export function requiresPermission(jsonRpc?: {
  readonly methods: Entries
  readonly tools?: Entries
}): boolean {
  const entries = [...Object.values(jsonRpc?.methods ?? {}), ...Object.values(jsonRpc?.tools ?? {})]
  return entries.some((entry) => entry !== true && entry.permission !== undefined)
}
