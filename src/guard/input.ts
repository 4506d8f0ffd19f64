/** The checked input of a route, by the methods of its declaration. */
import type { Context } from 'hono'
import type { $ZodType, output } from 'zod/v4/core'
import type { InputSchemas } from '../policy/definition.ts'

type Part = keyof InputSchemas

/** Adds what a schema returns to the input of a route. */
export type With<Valid, Name extends Part, Schema extends $ZodType> = Valid & {
  readonly [Key in Name]: output<Schema>
}

/** The names of the parts in Hono. */
const TARGETS = { body: 'json', query: 'query', params: 'param', headers: 'header' } as const

/** Returns what the schemas of a declaration have returned for a request. */
export function validInput(c: Context, schemas: InputSchemas): Readonly<Record<string, unknown>> {
  const parts = Object.entries(TARGETS).filter(([part]) => schemas[part as Part] !== undefined)
  return Object.fromEntries(parts.map(([part, target]) => [part, c.req.valid(target as never)]))
}

/** Replaces the path parameters that the stages read. */
export function setParams(c: Context, params: Readonly<Record<string, unknown>>): void {
  const texts: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(params)) {
    // A parameter of several segments is a list in some frameworks.
    if (value !== undefined) texts[name] = Array.isArray(value) ? value.join('/') : String(value)
  }
  Object.defineProperty(c.req, 'param', {
    configurable: true,
    value: (name?: string) => (name === undefined ? texts : texts[name]),
  })
}
