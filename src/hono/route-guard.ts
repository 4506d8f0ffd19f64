/** The guard of a route of a Hono app, and the input that it gives to the handler. */
import type { BlankInput, Input, MiddlewareHandler } from 'hono/types'
import type { $ZodType, input, output } from 'zod/v4/core'

type Part = 'json' | 'query' | 'param' | 'header'

/** How a client writes a value: as it is in JSON, otherwise as text. */
type Written<Target extends Part, Schema extends $ZodType> = Target extends 'json'
  ? input<Schema>
  : {
      [Name in keyof input<Schema>]: input<Schema>[Name] extends string | undefined
        ? input<Schema>[Name]
        : string
    }

type With<I extends Input, Target extends Part, Schema extends $ZodType> = I & {
  in: { [Name in Target]: Written<Target, Schema> }
  out: { [Name in Target]: output<Schema> }
}

/**
 * The guard of a route. Each method returns a new guard, so a part of a declaration can be shared.
 * The handler reads the parsed input with `c.req.valid('json')`, and Hono's client infers it.
 */
export interface RouteGuard<
  Variables extends object,
  LimitName extends string,
  I extends Input = BlankInput,
> extends MiddlewareHandler<{ Variables: Variables }, string, I> {
  /** Requires a JSON body that matches. `c.req.valid('json')` returns the output of the schema. */
  body<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Variables, LimitName, With<I, 'json', Schema>>
  /** Requires a query that matches: `c.req.valid('query')`. Only parameters of `z.array` may be repeated. */
  query<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Variables, LimitName, With<I, 'query', Schema>>
  /** Requires path parameters that match: `c.req.valid('param')`. */
  params<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Variables, LimitName, With<I, 'param', Schema>>
  /** Requires headers that match, by lower-case name: `c.req.valid('header')`. */
  headers<Schema extends $ZodType>(
    schema: Schema,
  ): RouteGuard<Variables, LimitName, With<I, 'header', Schema>>
  /** Counts these limits in addition to `standard`. */
  limit(...names: [LimitName, ...LimitName[]]): RouteGuard<Variables, LimitName, I>
  /** Replaces the guard's limit of the body; 0 forbids a body. */
  maxBodyBytes(bytes: number): RouteGuard<Variables, LimitName, I>
}
