/** The declaration of a route: `guard.require('notes:read').body(newNote)`. */
import type { BlankInput, Input, MiddlewareHandler } from 'hono/types'
import { $ZodType, type input, type output } from 'zod/v4/core'
import { Misconfigured } from '../errors.ts'
import type { InputSchemas, PermissionDemand } from '../policy/definition.ts'

/** The requirements of a route, as the guard and the guards of routes read them. */
export interface Declaration {
  /** Unique in the isolate. */
  readonly id: number
  /** The declaration as the source has it, for messages. */
  readonly text: string
  /** Admits anonymous callers. */
  readonly anonymous: boolean
  /** Undefined: any caller that is identified. */
  readonly permission: PermissionDemand | undefined
  /** Names of limits that count in addition to `standard`. */
  readonly limits: readonly string[]
  /** Undefined: the limit of the guard. */
  readonly maxBodyBytes: number | undefined
  readonly input: InputSchemas
}

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

let declared = 0

/**
 * Creates the guard of a route. `handlerOf` creates its middleware, for each step of the
 * declaration. Throws `Misconfigured` for a step that is not valid.
 */
export function routeGuard<Variables extends object, LimitName extends string>(
  declaration: Omit<Declaration, 'id'>,
  handlerOf: (declaration: Declaration) => MiddlewareHandler,
): RouteGuard<Variables, LimitName> {
  const { text, input: schemas, limits } = declaration

  function next(call: string, change: Partial<Declaration>) {
    return routeGuard({ ...declaration, ...change, text: `${text}.${call}` }, handlerOf)
  }

  const taking = (part: keyof InputSchemas) => (schema: $ZodType) => {
    const mistake = mistakeInSchema(schema, schemas[part])
    if (mistake !== undefined) throw new Misconfigured(`${text}.${part}()`, [mistake])
    return next(`${part}(…)`, { input: { ...schemas, [part]: schema } })
  }

  const handler = handlerOf({ ...declaration, id: declared++ })
  return Object.assign(handler, {
    body: taking('body'),
    query: taking('query'),
    params: taking('params'),
    headers: taking('headers'),
    limit: (...names: readonly string[]) =>
      next(`limit(${names.map((name) => `'${name}'`).join(', ')})`, {
        limits: [...new Set([...limits, ...names])],
      }),
    maxBodyBytes(bytes: number) {
      if (!Number.isSafeInteger(bytes) || bytes < 0)
        throw new Misconfigured(`${text}.maxBodyBytes()`, ['must be an integer of at least 0'])
      return next(`maxBodyBytes(${bytes})`, { maxBodyBytes: bytes })
    },
    // The input types exist only at compile time.
  }) as unknown as RouteGuard<Variables, LimitName>
}

function mistakeInSchema(schema: unknown, before: $ZodType | undefined): string | undefined {
  if (!(schema instanceof $ZodType)) return 'must be a zod schema'
  return before === undefined ? undefined : 'was already declared'
}
