/** Hono's `createMiddleware` without the type parameters that differ between versions of Hono. */
import type { Env, MiddlewareHandler } from 'hono'
import { createMiddleware as create } from 'hono/factory'

export type Middleware<E extends Env> = MiddlewareHandler<E>

// biome-ignore lint/suspicious/noExplicitAny: as in Hono, a middleware without variables fits any app
export function createMiddleware<E extends Env = any>(handler: Middleware<E>): Middleware<E> {
  return create<E>(handler)
}
