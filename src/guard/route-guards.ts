/** The methods of a guard, and of the guards of routes, whatever the framework of the app. */
import type { $ZodType } from 'zod/v4/core'
import { callerOf } from '../middleware/context.ts'
import type { InputSchemas, PermissionDemand } from '../policy/definition.ts'
import type { Builds } from './builds.ts'
import { type Declaration, declareRoutes } from './declaration.ts'
import type { Suggested } from './options.ts'
import type { RevocationTarget } from './revoke.ts'
import type { Admission } from './run.ts'

/** Computes `guard`, the guard of a route of one framework, with one schema more than `valid` is of. */
export interface RouteGuardType {
  readonly valid: unknown
  readonly part: keyof InputSchemas
  readonly schema: $ZodType
  readonly guard: unknown
}

type Next<Type extends RouteGuardType, Valid, Part, Schema> = (Type & {
  readonly valid: Valid
  readonly part: Part
  readonly schema: Schema
})['guard']

/** The steps of a declaration. Each returns a new guard, so a part of a declaration can be shared. */
export interface RouteSteps<Type extends RouteGuardType, LimitName extends string, Valid> {
  /** Requires a JSON body that matches. */
  body<Schema extends $ZodType>(schema: Schema): Next<Type, Valid, 'body', Schema>
  /** Requires a query that matches. Only parameters of `z.array` may be repeated. */
  query<Schema extends $ZodType>(schema: Schema): Next<Type, Valid, 'query', Schema>
  /** Requires path parameters that match. */
  params<Schema extends $ZodType>(schema: Schema): Next<Type, Valid, 'params', Schema>
  /** Requires headers that match, by lower-case name. */
  headers<Schema extends $ZodType>(schema: Schema): Next<Type, Valid, 'headers', Schema>
  /** Counts these limits in addition to `standard`. */
  limit(...names: [LimitName, ...LimitName[]]): this
  /** Replaces the guard's limit of the body; 0 forbids a body. */
  maxBodyBytes(bytes: number): this
}

/** The methods of a guard. `Request` is what the framework calls its handlers with. */
export interface GuardMethods<OfCaller, OfAnyone, Permission extends string, Request> {
  /** Guards a route: callers need this permission, from their roles and scopes. */
  require(permission: Suggested<Permission> | PermissionDemand): OfCaller
  /** Guards a route for any identified caller. */
  authenticated(): OfCaller
  /** Opens a route to anonymous callers. A token that is sent must be valid. */
  public(): OfAnyone
  /**
   * Revokes a token, or all tokens of a subject, session, client or tenant that were issued until now.
   * Default: the caller's token, by its `jti`. A token without `jti` is revoked with all tokens of its
   * subject that were issued until now, the same second included. A revocation is in force on the next
   * request, in every isolate or process. Rejects with `Unavailable` if it may not have been stored.
   */
  revoke(request: Request, target?: RevocationTarget): Promise<void>
}

/** How a framework applies a guard. */
interface Face<Request> {
  handlerOf(declaration: Declaration): object
  /** Returns by which guards a request was admitted. Throws `OutOfOrder` for `what` if this guard did not run. */
  admissionOf(request: Request, what: string): Admission
}

export function guardMethods<OfCaller, OfAnyone, Permission extends string, Request>(
  builds: Builds,
  { handlerOf, admissionOf }: Face<Request>,
): GuardMethods<OfCaller, OfAnyone, Permission, Request> {
  const routes = declareRoutes((declaration) => {
    const handler = handlerOf(declaration)
    builds.add(handler, declaration)
    return handler
  })
  const methods: GuardMethods<unknown, unknown, Permission, Request> = {
    ...routes,
    async revoke(request, target) {
      const { c, guarded } = admissionOf(request, 'guard.revoke()')
      return guarded.revoke(callerOf(c, 'guard.revoke'), target)
    },
  }
  // The framework determines the types of its handlers.
  return methods as GuardMethods<OfCaller, OfAnyone, Permission, Request>
}
