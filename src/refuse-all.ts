/** What runs in place of a gateway that is set up wrongly. */
import { Hono } from 'hono'
import { Misconfigured } from './errors.ts'
import { problemHandler } from './problem.ts'

/**
 * An app that answers everything with the problem `misconfigured`: rather no protection asked for
 * than half of it given. The mistakes go to the log, once, and not on the wire. Anything but
 * {@link Misconfigured} is a defect and is thrown on.
 */
export function refuseAll(error: unknown): Hono {
  if (!(error instanceof Misconfigured)) throw error
  console.error(error.message)
  const app = new Hono()
  app.onError(problemHandler())
  app.all('*', () => {
    throw error
  })
  return app
}
