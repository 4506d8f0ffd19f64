/** What an explanation says about routes that another proxy cannot decide. */
import { expect, test } from 'vitest'
import * as z from 'zod'
import { forwardAuth } from '../../../src/features/forward-auth/index.ts'
import { definePolicy } from '../../../src/index.ts'
import { policyTester } from '../../../src/testing/index.ts'

const body = z.strictObject({ text: z.string() })
const tester = policyTester(
  definePolicy({
    roles: {},
    limits: {},
    features: [forwardAuth({ withoutBody: ['POST /notes'] })],
    routes: [
      { method: 'GET', path: '/notes', anonymous: true },
      { method: 'POST', path: '/notes', anonymous: true, input: { body } },
      { method: 'PUT', path: '/notes', anonymous: true, input: { body } },
    ],
  }),
)

async function remarksOn(line: string): Promise<unknown> {
  const { stages } = await tester.explain(
    line,
    line.startsWith('GET') ? {} : { body: { text: 'a' } },
  )
  return stages.find(({ stage }) => stage === 'proxy')?.read.remarks
}

test('an explanation names what is not decided for another proxy', async () => {
  expect(await remarksOn('GET /notes')).toBeUndefined()
  expect(await remarksOn('POST /notes')).toEqual([
    expect.stringContaining('do not see the body: the answer says X-Portcullis-Undecided: body'),
  ])
  expect(await remarksOn('PUT /notes')).toEqual([expect.stringContaining('403 body_elsewhere')])
})
