/** Schema of a route's `inspect` in a policy, and of the middleware's options. */
import * as z from 'zod'
// Imported by name: a property access on the namespace `z.core` would bundle all of zod.
import { $ZodType } from 'zod/v4/core'
import { featureSchema } from './feature.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION } from './names.ts'
import { dropsUnknownKeys } from './strictness.ts'

/** MCP's method that calls a tool; `params.name` is the tool's name. */
export const TOOLS_CALL = 'tools/call'

const permission = z
  .string()
  .regex(PERMISSION, 'must be a permission such as orders:read')
  .optional()
const strictSchema = z
  .custom<z.ZodType>((value) => value instanceof $ZodType, {
    error: 'must be a zod schema',
    abort: true,
  })
  .refine((schema) => !dropsUnknownKeys(schema), {
    error:
      'drops unknown keys, which would still reach the origin; ' +
      'use z.strictObject, or z.looseObject to allow them',
  })
  .optional()
/** Longer than any name in use. */
const calledName = z.string().min(1).max(256)

/**
 * Accepts an entry, or `true` for one without conditions. Not a union, because its errors would not
 * name the field.
 */
const entry = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (value === true ? {} : value), schema)

const jsonRpcSchema = z
  .strictObject({
    methods: z.record(calledName, entry(z.strictObject({ permission, params: strictSchema }))),
    tools: z
      .record(calledName, entry(z.strictObject({ permission, arguments: strictSchema })))
      .optional(),
    maxBatch: z.int().min(1).max(50).optional(),
  })
  .refine(({ methods, tools }) => Object.hasOwn(methods, TOOLS_CALL) === (tools !== undefined), {
    error: `requires both tools and the method ${TOOLS_CALL}, or neither`,
  })

const mode = modeSchema.optional()

/** A route's `inspect`. Does NOT check the route: `jsonRpc` requires one with a body. */
export const inspectSchema = z.strictObject({
  mode,
  maxDepth: z.int().min(1).max(100).optional(),
  maxNames: z.int().min(1).max(1_000_000).optional(),
  maxStringChars: z.int().min(1).max(104_857_600).optional(),
  repeatable: z.array(z.string()).optional(),
  // Parses `false` as undefined. Not a union, because its errors would not name the field.
  signatures: z
    .preprocess(
      (value) => (value === false ? undefined : value),
      featureSchema('signatures', 'signatures').optional(),
    )
    .optional(),
  jsonRpc: jsonRpcSchema.optional(),
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
