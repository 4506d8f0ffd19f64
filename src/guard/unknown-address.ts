/** Requests for which the runtime reports no client address. */
import type { Context, MiddlewareHandler } from 'hono'
import { Misconfigured } from '../errors.ts'
import { UNKNOWN_ADDRESS } from '../http/address-list.ts'
import { IS_WORKERS } from '../isolate/platform.ts'
import { type AdmitOptions, admit } from '../middleware/admit.ts'
import { callerOf, clientAddressOf } from '../middleware/context.ts'
import type { PolicyLimit } from '../policy/policy.ts'
import { OPTIONS } from './schema.ts'

const MISTAKE =
  'clientAddress: no address of the client is known, so all anonymous callers would share one limit and no ' +
  'address could be banned; set it to a function of the context that returns the address which your ' +
  'platform or proxy writes'

interface UnknownAddress {
  /** Logs once that the address is unknown. Comes after `clientAddress`. */
  readonly report: MiddlewareHandler
  /** Creates the stage `admit`, which refuses a request that would share its window with every caller. */
  admitKnown(options: AdmitOptions): MiddlewareHandler
}

/** In a Worker the address is missing only in calls of other Workers, which share one window. */
export function unknownAddress(): UnknownAddress {
  let isReported = IS_WORKERS

  const isUnknown = (c: Context) => clientAddressOf(c, 'admit') === UNKNOWN_ADDRESS

  function report(c: Context): void {
    if (isReported || !isUnknown(c)) return
    isReported = true
    console.error(new Misconfigured(OPTIONS, [MISTAKE]).message)
  }

  return {
    report(c, next) {
      report(c)
      return next()
    },
    admitKnown(options) {
      const { limits = [] } = options
      const stage = admit(options)
      if (IS_WORKERS || limits.length === 0) return stage
      return function admitKnown(c, next) {
        if (isUnknown(c) && limits.some((limit) => countsAddress(limit, c)))
          throw new Misconfigured(OPTIONS, [MISTAKE])
        return stage(c, next)
      }
    },
  }
}

/** Anonymous callers count by address, unless a function names their window. */
const countsAddress = ({ by }: PolicyLimit, c: Context): boolean =>
  by === 'address' || (typeof by !== 'function' && callerOf(c, 'admit') === null)
