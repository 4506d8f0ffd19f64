/**
 * The three outcomes of a guard: it returns (allowed), throws {@link Denied} (the caller's fault),
 * or throws {@link Unavailable} (a dependency's fault). Both errors carry their response, as Hono's
 * `HTTPException` does, so that an app without our error handler answers correctly too.
 */
import { HTTPException } from 'hono/http-exception'
import type { Check } from './problems/checks.ts'
import { type Mistake, textOf } from './problems/mistake.ts'
import { type Problem, problem, problemResponse } from './problems/problem.ts'
import { problemOfDenial, problemOfFailure } from './problems/problem-of.ts'
import type { Denial, Dependency, Fault } from './problems/reasons.ts'

/**
 * Makes `instanceof` recognize the errors of every copy of this package in the process. Two copies are
 * normal: npm can install one for the policy or for a feature, and another one for the gateway. A
 * subclass of the app is recognized by its prototype, as usual.
 */
function recognizeCopies(kind: abstract new (...args: never[]) => Error, name: string): void {
  const brand = Symbol.for(`portcullis.${name}`)
  Object.defineProperty(kind.prototype, brand, { value: true })
  Object.defineProperty(kind, Symbol.hasInstance, {
    value(this: unknown, error: unknown): boolean {
      return this === kind
        ? typeof error === 'object' && error !== null && brand in error
        : Function.prototype[Symbol.hasInstance].call(this as () => void, error)
    },
  })
}

/** An error with its problem document. */
export abstract class ProblemError extends HTTPException {
  static {
    recognizeCopies(ProblemError, 'ProblemError')
  }

  readonly problem: Problem

  constructor(problem: Problem, message: string, options: ErrorOptions) {
    super(problem.status, { message, cause: options.cause })
    this.problem = problem
  }

  /** Returns the problem document, without what only the request or a configuration determines. */
  override getResponse(): Response {
    return problemResponse(this.problem)
  }
}

/** V8's stack trace limit, which no standard type library declares. */
const v8 = Error as typeof Error & { stackTraceLimit: number }

/**
 * The request is refused because of something that the caller can correct (4xx). The error has no
 * stack: the reason identifies its origin, and stacks would use a tenth of the CPU during a flood
 * of refusals.
 */
export class Denied extends ProblemError {
  static {
    recognizeCopies(Denied, 'Denied')
  }

  override readonly name = 'Denied'
  readonly denial: Denial

  constructor(denial: Denial, options: ErrorOptions = {}) {
    const frames = v8.stackTraceLimit
    v8.stackTraceLimit = 0
    super(problemOfDenial(denial), denial.code, options)
    v8.stackTraceLimit = frames
    this.denial = denial
  }
}

/** Returns the refusal of a request that fails this check of its form. */
export const malformed = (check: Check<'malformed_request'>): Denied =>
  new Denied({ code: 'malformed_request', check })

interface UnavailableOptions extends ErrorOptions {
  readonly retryAfterSeconds?: number
  /** A circuit breaker refused the call before it reached the dependency. */
  readonly shortCircuited?: boolean
  /** What was wrong, for the response. Never text of the dependency. Default: general words. */
  readonly detail?: string | undefined
}

/** Short, because a circuit breaker or a failover usually recovers within seconds. */
const DEFAULT_RETRY_AFTER_SECONDS = 5

/**
 * A dependency did not return a usable decision. The request is refused, because it may not be
 * allowed (503; 502 and 504 for the origin). `cause` may contain text from the dependency. It is
 * for debuggers, and never for a response, a log or an audit event.
 */
export class Unavailable extends ProblemError {
  static {
    recognizeCopies(Unavailable, 'Unavailable')
  }

  override readonly name = 'Unavailable'
  readonly dependency: Dependency
  readonly fault: Fault
  readonly retryAfterSeconds: number
  readonly shortCircuited: boolean

  constructor(dependency: Dependency, fault: Fault, options: UnavailableOptions = {}) {
    const { retryAfterSeconds = DEFAULT_RETRY_AFTER_SECONDS, shortCircuited = false } = options
    const { detail } = options
    const failure = { dependency, fault, retryAfterSeconds, shortCircuited, detail }
    super(problemOfFailure(failure), `${dependency}: ${fault}`, options)
    this.dependency = dependency
    this.fault = fault
    this.retryAfterSeconds = retryAfterSeconds
    this.shortCircuited = shortCircuited
  }
}

/** Rethrows all but an outage. For a call without which the request can go on. */
export function ignoreOutage(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error
}

/**
 * A middleware did not run before another one that needs it. This is a defect of the app: the
 * message names both, and is logged whatever the error handler of the app does.
 */
export class OutOfOrder extends ProblemError {
  static {
    recognizeCopies(OutOfOrder, 'OutOfOrder')
  }

  override readonly name = 'OutOfOrder'

  constructor(message: string) {
    super(problem('internal_error', 'The request could not be handled.'), message, {})
    console.error(`wrong order of middlewares: ${message}`)
  }
}

/**
 * Reports whether an error that the app threw carries its own response: an `HTTPException` of Hono,
 * also of another copy of Hono.
 */
export function carriesResponse(error: unknown): error is HTTPException {
  return error instanceof Error && 'getResponse' in error && !(error instanceof ProblemError)
}

/** The gateway's configuration is invalid. The message lists all mistakes and is only for logs. */
export class Misconfigured extends Error {
  static {
    recognizeCopies(Misconfigured, 'Misconfigured')
  }

  override readonly name = 'Misconfigured'
  /** Each mistake as a text with its place. */
  readonly mistakes: readonly string[]
  readonly found: readonly Mistake[]

  /** A mistake that is only a text has no place. */
  constructor(what: string, mistakes: readonly (string | Mistake)[]) {
    const verb = what.startsWith('The options') ? 'are' : 'is'
    const found = mistakes.map(
      (mistake): Mistake =>
        typeof mistake === 'string'
          ? { code: 'invalid_value', path: [], message: mistake }
          : mistake,
    )
    const texts = found.map(textOf)
    super(`${what} ${verb} not valid:\n${texts.map((text) => `  - ${text}`).join('\n')}`)
    this.mistakes = texts
    this.found = found
  }
}

/** Writes the kind of an error for an operator. Its message may contain any data. */
export const logKind = (where: string, error: unknown): void =>
  console.error(`${where}: ${error instanceof Error ? error.name : typeof error}`)
