/** The shape of a route's `inspect` in a policy, and of what the middleware is given. */
import * as z from 'zod'
// By name: a value read off the namespace `z.core` would bundle all of zod.
import { $ZodType } from 'zod/v4/core'
import type { SignatureCategory } from '../errors.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION } from './permission.ts'
import { dropsUnknownKeys } from './strictness.ts'

/** MCP's method that calls a tool; `params.name` says which. */
export const TOOLS_CALL = 'tools/call'

const permission = z.string().regex(PERMISSION, 'a permission such as orders:read').optional()
const strictSchema = z
  .custom<z.ZodType>((value) => value instanceof $ZodType, { error: 'a zod schema', abort: true })
  .refine((schema) => !dropsUnknownKeys(schema), {
    error:
      'drops unknown keys, which would still reach the origin; ' +
      'use z.strictObject, or z.looseObject to let them pass',
  })
  .optional()
/** Longer than any name in use. */
const calledName = z.string().min(1).max(256)

/**
 * An entry, or `true` for one without conditions; not a union, whose mistakes would be anonymous.
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
    error: `needs ${TOOLS_CALL} among its methods and tools, both or neither`,
  })

const mode = modeSchema.optional()

/** Every kind of attack that has signatures. */
export const SIGNATURE_CATEGORIES = [
  'sql_injection',
  'path_traversal',
  'command_injection',
  'ssrf_target',
  'cross_site_scripting',
] as const satisfies readonly SignatureCategory[]

const signaturesSchema = z.strictObject({
  threshold: z.int().min(1).max(100).optional(),
  mode,
  categories: z.array(z.enum(SIGNATURE_CATEGORIES)).min(1).optional(),
})

/** What a route's `inspect` may say. Does NOT know the route: `jsonRpc` needs one with a body. */
export const inspectSchema = z.strictObject({
  mode,
  maxDepth: z.int().min(1).max(100).optional(),
  maxNames: z.int().min(1).max(1_000_000).optional(),
  maxStringChars: z.int().min(1).max(104_857_600).optional(),
  repeatable: z.array(z.string()).optional(),
  // `false` as a schema without fields: a union's mistakes would be anonymous.
  signatures: z
    .preprocess((value) => (value === false ? undefined : value), signaturesSchema.optional())
    .optional(),
  jsonRpc: jsonRpcSchema.optional(),
})

type Entries = Readonly<Record<string, true | { readonly permission?: string }>>

/** Whether any method or tool demands a permission, which an anonymous caller cannot have. */
export function demandsPermission(jsonRpc?: {
  readonly methods: Entries
  readonly tools?: Entries
}): boolean {
  const entries = [...Object.values(jsonRpc?.methods ?? {}), ...Object.values(jsonRpc?.tools ?? {})]
  return entries.some((entry) => entry !== true && entry.permission !== undefined)
}
