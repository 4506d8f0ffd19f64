/** The app that runs instead of a misconfigured gateway. */
import type { Hono } from 'hono'
import { HonoBase } from 'hono/hono-base'
import type { BlankEnv } from 'hono/types'
import { Misconfigured } from '../errors.ts'
import { problemHandler } from '../middleware/problem-handler.ts'

/**
 * Creates an app that answers everything with the problem `misconfigured`, because an outage is
 * safer than partial protection. The mistakes are logged once, and are not part of the response.
 */
export function refuseAll(error: unknown): Hono {
  const cause = error instanceof Error ? error : new Error('unknown')
  console.error(cause instanceof Misconfigured ? cause.message : `The gateway: ${cause.message}`)
  // It has no routes.
  const app = new HonoBase<BlankEnv>({ router: { name: 'none', add() {}, match: () => [[]] } })
  app.onError(problemHandler())
  app.notFound(() => {
    throw cause instanceof Misconfigured ? cause : new Misconfigured('The gateway', [])
  })
  return app
}
