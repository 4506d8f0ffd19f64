/** Schema of a route's `inspect` in a policy, and of the middleware's options. */

import * as z from 'zod/mini'
import { featureSchema } from './feature.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION } from './names.ts'
import { text, wholeNumber, withShorthand } from './schema-parts.ts'
import { dropsUnknownKeys, zodSchema } from './strictness.ts'

/** MCP's method that calls a tool; `params.name` is the tool's name. */
export const TOOLS_CALL = 'tools/call'

const permission = z.optional(
  z.string().check(z.regex(PERMISSION, 'must be a permission such as orders:read')),
)
const strictSchema = z.optional(
  zodSchema.check(
    z.refine((schema) => !dropsUnknownKeys(schema), {
      error:
        'drops unknown keys, which would still reach the origin; ' +
        'use z.strictObject, or z.looseObject to allow them',
    }),
  ),
)
/** Longer than any name in use. */
const calledName = text(256)

const entry = <Schema extends z.core.$ZodType>(schema: Schema) => withShorthand(true, {}, schema)

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

/** A route's `inspect`. Does NOT check the route: `jsonRpc` requires one with a body. */
export const inspectSchema = z.strictObject({
  mode: z.optional(modeSchema),
  maxDepth: z.optional(wholeNumber(1, 100)),
  maxNames: z.optional(wholeNumber(1, 1_000_000)),
  maxStringChars: z.optional(wholeNumber(1, 104_857_600)),
  repeatable: z.optional(z.array(z.string())),
  signatures: z.optional(withShorthand(false, undefined, z.optional(featureSchema('signatures')))),
  jsonRpc: z.optional(jsonRpcSchema),
})

type Entries = Readonly<Record<string, true | { readonly permission?: string }>>

/** Returns the permissions that calls require. Anonymous callers cannot have one. */
export function permissionsIn(jsonRpc?: {
  readonly methods: Entries
  readonly tools?: Entries
}): readonly string[] {
  const entries = [...Object.values(jsonRpc?.methods ?? {}), ...Object.values(jsonRpc?.tools ?? {})]
  return entries.flatMap((entry) => (entry === true ? [] : (entry.permission ?? [])))
}
