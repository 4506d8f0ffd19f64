/** Runs the stages of a guard for a request of an app without Hono. */
import type { Context } from 'hono'
import { HonoBase } from 'hono/hono-base'
import { OutOfOrder } from '../errors.ts'
import {
  clientAddressOf as addressOf,
  requestIdOf as idOf,
  traceOf as traceOfContext,
} from '../middleware/context.ts'
import type { Demand, Framework, Guarded } from './guarded.ts'

export interface Run {
  readonly guarded: Guarded
  readonly demand: Demand
  /** What `clientAddress` of the options gets. */
  readonly source: object
  /** Returns the client's address, unless the options do. Undefined: it is unknown. */
  address(c: Context): string | undefined
  /**
   * Runs the handlers of the app after the admission, and resolves when their response is complete. What it
   * throws is the response of a stage, unless it is no `Error`.
   */
  handle(c: Context): Promise<Response>
}

/** For its `waitUntil`. */
type ExecutionContext = Parameters<HonoBase['fetch']>[2]

/** What the guards read from a {@link Run}. */
export const OF_RUN = {
  demandOf: (c) => (c.env as Run).demand,
  addressOf: (c) => (c.env as Run).address(c),
  sourceOf: (c) => (c.env as Run).source,
} satisfies Framework

/** Returns a function that runs the stages, and then the handlers. It resolves with the response. */
export function createRunner() {
  // It has no routes: every request is for the one handler.
  const app = new HonoBase({ router: { name: 'none', add() {}, match: () => [[]] } })
  app.notFound(async (c) => {
    const { guarded, handle } = c.env as unknown as Run
    await guarded.admit(c, async () => {
      try {
        c.res = await handle(c)
      } catch (error) {
        if (!(error instanceof Error)) throw error
        c.error = error
        c.res = await guarded.onError(error, c)
      }
    })
    return c.res
  })
  return (request: Request, run: Run, context?: ExecutionContext): Promise<Response> =>
    Promise.resolve(app.fetch(request, run, context))
}

/** By the request object of the framework. */
const contexts = new WeakMap<object, Context>()

/** Returns the context of a request. Throws `OutOfOrder` for `what` if no guard has admitted it. */
function contextOf(request: object, what: string): Context {
  const c = contexts.get(request)
  if (c === undefined) throw new OutOfOrder(`${what}: no guard has admitted this request`)
  return c
}

/** The admission of a request by a guard. */
export interface Admission {
  readonly c: Context
  readonly guarded: Guarded
}

/** The requests that one guard has admitted, by the request object of the framework. */
export function createAdmitted<State extends Admission>() {
  const admitted = new WeakMap<object, State>()
  return {
    get: (request: object) => admitted.get(request),
    add(request: object, admission: State): void {
      admitted.set(request, admission)
      contexts.set(request, admission.c)
    },
    /** Throws `OutOfOrder` for `what` if this guard has not admitted the request. */
    require(request: object, what: string): State {
      const admission = admitted.get(request)
      if (admission !== undefined) return admission
      contextOf(request, what)
      throw new OutOfOrder(`${what}: another guard has admitted this request`)
    },
  }
}

/** Returns the id of a request that a guard has admitted. */
export const requestIdOf = (request: object): string => idOf(contextOf(request, 'requestIdOf'))

/** Returns the address of its client: IPv6 as `2001:db8:1:2::/64`; `unknown` if there is none. */
export const clientAddressOf = (request: object): string =>
  addressOf(contextOf(request, 'clientAddressOf'))

/** Returns its trace, to continue in calls to other services. */
export const traceOf = (request: object) => traceOfContext(contextOf(request, 'traceOf'))
