import { Hono } from 'hono'
import { afterEach, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { problemHandler } from '../../src/middleware/problem-handler.ts'

afterEach(() => void vi.restoreAllMocks())

const SECRET = 'Bearer of-a-caller'

/** Returns the log of a request after its handler has thrown. */
async function logOf(defect: () => never) {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
  const app = new Hono()
  app.onError(problemHandler())
  app.get('/', defect)
  const response = await app.request('/')
  expect(response.status).toBe(500)
  const { headers } = response
  expect((await response.text()) + JSON.stringify([...headers])).not.toMatch(
    /of-a-caller|RangeError|internal-error\.test/,
  )
  return logged.mock.calls.flat().join('\n')
}

test.each([
  ['a line', `bad reply:\n${SECRET}\n`],
  ['a line that looks like a stack frame', `bad reply:\n    at ${SECRET}\n`],
])(
  'the log has the kind and the place of a defect, the response has neither, and no output has %s of its message [S29, S66]',
  async (_, message) => {
    const log = await logOf(() => {
      throw new RangeError(message)
    })
    expect(log).toMatch(/^internal error: RangeError\n {4}at .*internal-error\.test\.ts/)
    expect(log).not.toContain(SECRET)
  },
)

test('the log does not have a value that a schema error mentions [S66]', async () => {
  const log = await logOf(() => {
    z.strictObject({}).parse({ [SECRET]: 1 })
    throw new Error('the schema accepted the value')
  })
  expect(log).toMatch(/^internal error: \w+/)
  expect(log).not.toContain(SECRET)
})
