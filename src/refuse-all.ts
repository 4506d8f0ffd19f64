/** What runs in place of a gateway that is set up wrongly. */
import { Hono } from 'hono'
import { Misconfigured } from './errors.ts'
import { problemHandler } from './problem.ts'

/**
 * An app that answers everything with the problem `misconfigured`: rather no protection asked for
 * than half of it given. The mistakes go to the log, once, and not on the wire.
 */
export function refuseAll(error: unknown): Hono {
  const cause = error instanceof Error ? error : new Error('unknown')
  console.error(cause instanceof Misconfigured ? cause.message : `The gateway: ${cause.message}`)
  const app = new Hono()
  app.onError(problemHandler())
  app.all('*', () => {
    throw cause instanceof Misconfigured ? cause : new Misconfigured('The gateway', [])
  })
  return app
}
