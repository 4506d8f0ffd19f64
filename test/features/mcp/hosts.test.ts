/** Errors of a policy with several hosts: only the host of an MCP server answers with JSON-RPC. */
import { definePolicy } from 'portcullis'
import { mcp } from 'portcullis/mcp'
import { origins } from 'portcullis/origins'
import { policyTester } from 'portcullis/testing'
import { describe, expect, test } from 'vitest'

const row = { permission: 'tools:use', origin: 'tools' } as const
const policy = definePolicy({
  roles: { reader: ['tools:use'] },
  limits: {},
  origins: origins({ tools: { url: 'https://tools.internal' } }),
  routes: [
    ...mcp({ ...row, path: '/mcp', host: 'tools.test', tools: { list: true } }),
    { ...row, method: 'POST', path: '/mcp', host: 'shop.test' },
    { ...row, method: 'POST', path: '/mcp', host: 'shop.wide.test' },
    ...mcp({ ...row, path: '/mcp', host: '*.wide.test', tools: { list: true } }),
    { ...row, method: 'POST', path: '/orders' },
  ],
})
const tester = policyTester(policy)

/** Returns the status and the form of a refusal, after a check that no origin was called. */
async function refusalOf(host: string, headers: Record<string, string> = {}) {
  const sent = { host, headers: { 'content-type': 'application/json', ...headers }, body: '{}' }
  const { response, allowed } = await tester.request('POST /mcp', sent)
  expect(allowed).toBe(false)
  return [response.status, response.headers.get('content-type')]
}

const JSON_RPC = 'application/json'
const PROBLEM = 'application/problem+json'

describe('a refused POST /mcp', () => {
  test.each([
    ['tools.test', 401, JSON_RPC],
    ['a.wide.test', 401, JSON_RPC],
    ['shop.test', 401, PROBLEM],
    ['shop.wide.test', 401, PROBLEM],
    ['other.test', 404, PROBLEM],
  ])('of %s: %i with %s', async (host, status, type) => {
    expect(await refusalOf(host)).toEqual([status, type])
  })

  test.each([
    ['tools.test', JSON_RPC],
    ['shop.test', PROBLEM],
    ['shop.wide.test', PROBLEM],
  ])('of %s has the same form before its route is known', async (host, type) => {
    const tooLarge = { 'x-filler': 'a'.repeat(70_000) }
    expect((await refusalOf(host, tooLarge))[1]).toBe(type)
  })
})
