/** What has to happen after the answer, on Workers and elsewhere. */
import type { Context } from 'hono'
import type { WaitUntil } from '../tokens/principal.ts'

/**
 * `waitUntil` of a request. Outside of Workers, where Hono throws for want of an execution context,
 * a promise lives without help; its rejection is swallowed there.
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
