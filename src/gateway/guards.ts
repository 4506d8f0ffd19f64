/** The guards of a route in the order of the pipeline, for the gateway and for Hono apps. */
import type { MiddlewareHandler } from 'hono'
import { type AdmitOptions, admit } from '../middleware/admit.ts'
import { type AuthenticateOptions, authenticate } from '../middleware/authenticate.ts'
import { authorize } from '../middleware/authorize.ts'
import { banOffenders } from '../middleware/ban-offenders.ts'
import { stage } from '../middleware/in-order.ts'
import { limitBody } from '../middleware/limit-body.ts'
import { type ReadmitOptions, readmit } from '../middleware/readmit.ts'
import type { RelationOptions } from '../middleware/relation.ts'
import { serverTiming } from '../middleware/server-timing.ts'
import { stepUp } from '../middleware/step-up.ts'
import { throttle } from '../middleware/throttle.ts'
import { type ValidateOptions, validate } from '../middleware/validate.ts'
import type { PolicyLimit } from '../policy/policy.ts'
import type { LoginDemand } from '../problems/step-up.ts'
import type { Mode } from '../validators/mode.ts'
import type { RouteStages } from './feature.ts'
import type { GuardServices } from './guard-services.ts'

/** The services of the guards. The optional services accept further kinds of credentials. */
export interface GuardParts
  extends Pick<
      GuardServices,
      'verifier' | 'sources' | 'admission' | 'authorizer' | 'failures' | 'violations' | 'now'
    >,
    Pick<AuthenticateOptions, 'references' | 'proofs' | 'maxTokenBytes'> {}

export interface CallerDemand {
  readonly limits: readonly PolicyLimit[]
  readonly maxBodyBytes: number
  /** Limits the body for `c.req` too. Default false. */
  readonly ofRequest?: boolean
  /** Admits callers without a credential. */
  readonly anonymous: boolean
  /** Requires a proof of possession. Default false. */
  readonly dpop?: boolean
  /** What the login of the caller must be. Default: any. */
  readonly authentication?: LoginDemand | undefined
  /** Default false. */
  readonly sendNonces?: boolean
  /** A revocation is in force at once, whatever `maxStalenessMs` allows. Default false. */
  readonly strict?: boolean
  /** Default none. */
  readonly relation?: RelationOptions | undefined
  /** Creates the stage `admit`. Default: one for all requests of the route. */
  readonly admitBy?: ((options: AdmitOptions) => MiddlewareHandler) | undefined
  /** Wraps `authenticate`, to accept browser sessions. Default: they are not accepted. */
  readonly identify?: RouteStages['identify'] | undefined
}

/** Returns the guards up to the admission: they identify the caller, and check whether it may call. */
export function callerGuards(parts: GuardParts, demand: CallerDemand): MiddlewareHandler[] {
  const { verifier, references, proofs, sources, maxTokenBytes } = parts
  const { admission, authorizer, failures, violations, now } = parts
  const { limits, maxBodyBytes, ofRequest = false, strict = false, relation } = demand
  const { admitBy = admit, identify = (guard) => guard, authentication: demanded } = demand
  const credentials = {
    verifier,
    references,
    proofs,
    sources,
    maxTokenBytes,
    dpop: demand.dpop ? 'required' : 'accepted',
    sendNonces: demand.sendNonces,
    anonymous: demand.anonymous,
  } as const
  return present([
    stage('limitBody', limitBody({ maxBytes: maxBodyBytes, ofRequest })),
    violations && stage('banOffenders', banOffenders({ violations, limits })),
    failures &&
      stage('throttle', throttle({ failures, verifier, references, sources, maxTokenBytes })),
    stage('authenticate', identify(authenticate(credentials), sources)),
    stage('admit', admitBy({ admission, limits, strict, relation, now })),
    serverTiming({ authorizer, now }),
    demanded && stage('stepUp', stepUp({ demand: demanded, dpop: demand.dpop, now })),
  ])
}

export interface RequestDemand {
  readonly anonymous: boolean
  /** Undefined: no permission is required. */
  readonly permission: string | undefined
  /** Undefined: enforced. */
  readonly mode: Mode | undefined
  /** Default none. */
  readonly relation?: RelationOptions | undefined
  /** The stage `inspect`. Default none: the bundle does not contain it. */
  readonly inspection?: MiddlewareHandler | undefined
  readonly input: ValidateOptions
  /** Undefined: a delayed request is not admitted again. */
  readonly readmission: Readmitted | undefined
}

/** What a readmission needs from the limits of its route, because it counts none. */
export type Readmitted = Required<Pick<ReadmitOptions, 'isLimited' | 'passesOutage'>>

export const readmittedBy = (limits: readonly PolicyLimit[]): Readmitted => ({
  isLimited: limits.length > 0,
  passesOutage: limits.some(({ onUnavailable }) => onUnavailable === 'allow'),
})

/** Returns the guards after the admission: whether the caller may do this, with this input. */
export function requestGuards(
  { authorizer, admission }: GuardParts,
  { anonymous, permission, mode, relation, inspection, input, readmission }: RequestDemand,
): MiddlewareHandler[] {
  return present([
    !anonymous && stage('authorize', authorize({ authorizer, permission, mode, relation })),
    inspection && stage('inspect', inspection),
    stage('validate', validate(input)),
    readmission && stage('readmit', readmit({ admission, relation, ...readmission })),
  ])
}

/**
 * Creates the guards of many routes. Routes with equal demands share them, so that fewer objects
 * compete for the caches of the processor. All limits with the same name must be equal.
 */
export function sharedGuards(parts: GuardParts) {
  const known = new Map<string, MiddlewareHandler[]>()
  /** A demand that contains an object, such as a relation or a schema, is not compared. */
  function shared(demand: object, create: () => MiddlewareHandler[]): MiddlewareHandler[] {
    if (Object.values(demand).some((value) => value instanceof Object)) return create()
    const key = JSON.stringify(demand)
    const guards = known.get(key) ?? create()
    known.set(key, guards)
    return guards
  }
  return {
    ofCaller: (demand: CallerDemand) =>
      shared({ ...demand, limits: JSON.stringify(demand.limits.map(({ name }) => name)) }, () =>
        callerGuards(parts, demand),
      ),
    ofRequest: (demand: RequestDemand) =>
      shared(
        {
          ...demand,
          input: Object.keys(demand.input).length > 0 ? demand.input : undefined,
          readmission: demand.readmission && JSON.stringify(demand.readmission),
        },
        () => requestGuards(parts, demand),
      ),
  }
}

const present = (guards: readonly (MiddlewareHandler | false | undefined)[]): MiddlewareHandler[] =>
  guards.filter((guard) => typeof guard === 'function')
