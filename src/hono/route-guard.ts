/** The guard of a route of a Hono app, and the input that it gives to the handler. */
import type { BlankInput, Input, MiddlewareHandler } from 'hono/types'
import type { $ZodType, input, output } from 'zod/v4/core'
import type { RouteGuardType, RouteSteps } from '../guard/route-guards.ts'

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

/** Names of the parts in Hono. */
interface Targets {
  body: 'json'
  query: 'query'
  params: 'param'
  headers: 'header'
}

interface OfHono<Variables extends object, LimitName extends string> extends RouteGuardType {
  readonly valid: Input
  readonly guard: RouteGuard<
    Variables,
    LimitName,
    With<this['valid'], Targets[this['part']], this['schema']>
  >
}

/**
 * The guard of a route. Each method returns a new guard, so a part of a declaration can be shared.
 * The handler reads the parsed input with `c.req.valid('json')`, and Hono's client infers it.
 */
export interface RouteGuard<
  Variables extends object,
  LimitName extends string,
  I extends Input = BlankInput,
> extends MiddlewareHandler<{ Variables: Variables }, string, I>,
    RouteSteps<OfHono<Variables, LimitName>, LimitName, I> {}
