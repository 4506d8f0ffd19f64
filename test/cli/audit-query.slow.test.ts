/** `portcullis audit query` over pages that are shorter than their limit. */
import { afterEach, expect, test } from 'vitest'
import { anEvent } from '../audit/event.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { runHere } from './command-here.ts'

const ENV = {
  PORTCULLIS_CLIENT_ID: '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c',
  PORTCULLIS_CLIENT_SECRET: 'a-secret',
}

let server: TestServer
afterEach(() => server.close())

/** Answers the query with these numbers of events, page by page, whatever its limit. */
async function startTrail(sizes: readonly number[]) {
  const queries: URLSearchParams[] = []
  server = await startHttpServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://gateway')
    if (pathname === '/oauth/token')
      return response.end('{"access_token":"the-access-token","expires_in":900}')
    if (pathname !== '/-/admin/audit')
      return response.end('{"token_endpoint":"https://public.example/oauth/token"}')
    queries.push(searchParams)
    const events = Array.from({ length: sizes[queries.length - 1] ?? 0 }, () => anEvent())
    const cursor = queries.length < sizes.length ? `${queries.length}` : undefined
    return response.end(JSON.stringify({ events, cursor }))
  })
  return queries
}

async function query(...args: readonly string[]) {
  const options = ['audit', 'query', '--json', '--url', server.url, ...args]
  const { code, stdout, stderr } = await runHere(options, { env: ENV })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { events, cursor } = JSON.parse(stdout)
  return { count: events.length, cursor }
}

test('reads pages until it has as many events as its limit permits', async () => {
  const queries = await startTrail([2, 0, 3, 9])
  expect(await query('--subject', 'alice', '--limit', '5')).toEqual({ count: 5, cursor: '3' })
  expect(queries.map((one) => [one.get('limit'), one.get('cursor')])).toEqual([
    ['5', null],
    ['3', '1'],
    ['3', '2'],
  ])
  expect(queries.every((one) => one.get('subject') === 'alice')).toBe(true)
})

test('ends with the last page, and after 250 pages with a cursor', async () => {
  await startTrail([0, 0, 1])
  expect(await query()).toEqual({ count: 1, cursor: undefined })
  await server.close()
  const queries = await startTrail(Array.from({ length: 300 }, () => 0))
  expect(await query()).toEqual({ count: 0, cursor: '250' })
  expect(queries).toHaveLength(250)
})

test('says after ten pages how far it has searched', async () => {
  await startTrail([1, ...Array.from({ length: 20 }, () => 0)])
  const { stderr } = await runHere(['audit', 'query', '--url', server.url], { env: ENV })
  const before = (pages: number) => new Date(pages).toISOString()
  expect(stderr.match(/\d+ matching events.*/g)).toEqual([
    `1 matching events so far. Searching before ${before(10)} ...`,
    `1 matching events so far. Searching before ${before(20)} ...`,
  ])
})
