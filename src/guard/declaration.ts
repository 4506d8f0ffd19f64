/** The declaration of a route: `guard.require('notes:read').body(newNote)`. */
import { $ZodType } from 'zod/v4/core'
import { Misconfigured } from '../errors.ts'
import type { InputSchemas, PermissionDemand } from '../policy/definition.ts'
import { PERMISSION } from '../validators/names.ts'

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

/** Returns what a handler of the app declares, if it is the guard of a route. */
export type DeclarationOf = (handler: object) => Declaration | undefined

/**
 * Returns the functions that declare routes. `handlerOf` creates the handler of a declaration, for each step of
 * the declaration. The functions throw `Misconfigured` for a step that is not valid.
 */
export function declareRoutes(handlerOf: (declaration: Declaration) => object) {
  const create = (declaration: Partial<Declaration> & Pick<Declaration, 'text'>) =>
    routeGuard({ ...UNDECLARED, ...declaration }, handlerOf)
  return {
    require(permission: string | PermissionDemand) {
      const demand = typeof permission === 'string' ? { name: permission } : permission
      const text = `guard.require('${demand.name}')`
      if (!PERMISSION.test(demand.name))
        throw new Misconfigured(text, ['must be a permission such as notes:read'])
      return create({ text, permission: demand })
    },
    authenticated: () => create({ text: 'guard.authenticated()' }),
    public: () => create({ text: 'guard.public()', anonymous: true }),
  }
}

const UNDECLARED: Omit<Declaration, 'id' | 'text'> = {
  anonymous: false,
  permission: undefined,
  limits: [],
  maxBodyBytes: undefined,
  input: {},
}

let declared = 0

function routeGuard(
  declaration: Omit<Declaration, 'id'>,
  handlerOf: (declaration: Declaration) => object,
): object {
  const { text, input: schemas, limits } = declaration

  function next(call: string, change: Partial<Declaration>) {
    return routeGuard({ ...declaration, ...change, text: `${text}.${call}` }, handlerOf)
  }

  const taking = (part: keyof InputSchemas) => (schema: $ZodType) => {
    const mistake = mistakeInSchema(schema, schemas[part])
    if (mistake !== undefined) throw new Misconfigured(`${text}.${part}()`, [mistake])
    return next(`${part}(…)`, { input: { ...schemas, [part]: schema } })
  }

  return Object.assign(handlerOf({ ...declaration, id: declared++ }), {
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
  })
}

function mistakeInSchema(schema: unknown, before: $ZodType | undefined): string | undefined {
  if (!(schema instanceof $ZodType)) return 'must be a zod schema'
  return before === undefined ? undefined : 'was already declared'
}
