/** `problemBaseUrl`: problems that link to a page about errors. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { cors } from '../../src/features/cors/index.ts'
import { definePolicy } from '../../src/index.ts'
import { policyTester } from '../../src/testing/index.ts'
import { anchorsOf } from '../docs/link-faults.ts'
import { ROOT } from '../harness/process.ts'

const BASE = 'https://docs.example.com/errors'
const policyWith = (fields: object) =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [
      {
        method: 'GET',
        path: '/orders',
        permission: 'orders:read',
        cors: cors({ origins: ['https://app.example'] }),
      },
    ],
    ...fields,
  })

async function typeOf(fields: object, line: string): Promise<string | undefined> {
  const decision = await policyTester(policyWith(fields)).request(line)
  if (decision.allowed) throw new Error(`${line} is allowed`)
  const { type } = (await decision.response.json()) as { readonly type?: string }
  return type
}

test.each([
  ['GET /orders', 'missing_token'],
  ['POST /orders', 'method_not_allowed'],
  ['GET /elsewhere', 'not_found'],
])('the problem of %s links to the section of its code', async (line, code) => {
  expect(await typeOf({ problemBaseUrl: BASE }, line)).toBe(`${BASE}#${code}`)
  expect(await typeOf({}, line)).toBe(`urn:portcullis:problem:${code}`)
})

test('the page about errors has a section for each code', () => {
  const page = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')
  const codes = [...page.matchAll(/^\| `(\w+)` \| \d{3} \|/gm)].map(([, code = '']) => code)
  expect(codes.length).toBeGreaterThan(25)
  const anchors = anchorsOf(page)
  expect(codes.filter((code) => !anchors.has(code))).toEqual([])
})

test.each([
  'errors',
  'https://docs.example.com/errors#',
  'https://docs.example.com/?a',
  'javascript:x',
])('the base URL %j is a mistake', (problemBaseUrl) => {
  expect(() => policyWith({ problemBaseUrl })).toThrow(Misconfigured)
})
