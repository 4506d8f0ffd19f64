/** Middlewares in a wrong order: the log and the response of the first request. */
import { Hono, type MiddlewareHandler } from 'hono'
import { afterEach, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createAuthorizer } from '../../src/access/permissions.ts'
import { admit } from '../../src/middleware/admit.ts'
import { authorize } from '../../src/middleware/authorize.ts'
import { clientAddress } from '../../src/middleware/client-address.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { validate } from '../../src/middleware/validate.ts'

afterEach(() => void vi.restoreAllMocks())

const admission = createAdmission({
  store: { consult: () => Promise.reject(new Error('no store')) } as never,
  now: Date.now,
})
const authorizer = createAuthorizer(new Map())
const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }

const CASES: readonly [string, readonly MiddlewareHandler[]][] = [
  ['admit: clientAddress() must run before it', [admit({ admission })]],
  ['admit: authenticate() must run before it', [clientAddress(), admit({ admission })]],
  [
    'authorize: authenticate() and admit() must run before it',
    [authorize({ authorizer, permission: 'notes:read' })],
  ],
  ['validate: limitBody() must run before it', [validate({ body: z.strictObject({}) })]],
]

test.each(CASES)('is a 500, and the log has "%s"', async (message, middlewares) => {
  for (const app of [
    new Hono(),
    new Hono().onError(problemHandler()),
    new Hono().onError((_, c) => c.text('defect', 500)),
  ]) {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    let reached = false
    app.use(...middlewares)
    app.all('*', (c) => {
      reached = true
      return c.text('reached')
    })
    const response = await app.request('/', post)
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('must run')
    expect(log.mock.calls).toEqual([[`wrong order of middlewares: ${message}`]])
    expect(reached).toBe(false)
    log.mockRestore()
  }
})
