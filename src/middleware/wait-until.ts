/** Work after the response, on Workers and elsewhere. */
import type { Context } from 'hono'
import type { WaitUntil } from '../identity/principal.ts'

/**
 * Returns `waitUntil` of a request. Outside of Workers, Hono throws because there is no execution
 * context. There, promises run to completion by themselves, and rejections are ignored.
 */
export function waitUntilOf(c: Context): WaitUntil {
  try {
    const context = c.executionCtx
    return (promise) => context.waitUntil(promise)
  } catch {
    return (promise) => {
      promise.catch(() => {})
    }
  }
}
