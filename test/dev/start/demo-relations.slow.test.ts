import { afterEach, expect, test } from 'vitest'
import policy from '#policy'
import { writeDemoRelations } from '../../../dev/start/demo-relations.ts'
import { mistakeOfTuple } from '../../../src/access/relations/permitted.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'

const OPERATOR = { PORTCULLIS_CLIENT_ID: 'me', PORTCULLIS_CLIENT_SECRET: 'secret' }

let gateway: TestServer | undefined
afterEach(() => gateway?.close())

/**
 * Starts a gateway that answers with these responses. Returns its requests and whether the tuples
 * exist at the end.
 */
async function written(...statuses: readonly number[]) {
  const requests: { url: string | undefined; authorization: string | undefined; body: string }[] =
    []
  gateway = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { authorization } = request.headers
    requests.push({ url: request.url, authorization, body: Buffer.concat(chunks).toString() })
    response.statusCode = statuses[requests.length - 1] ?? 500
    response.end('{"access_token":"token"}')
  })
  return { isThere: await writeDemoRelations(gateway.url, OPERATOR), requests }
}

test('the operator of the checkout writes the demo’s tuples, and the model permits each of them', async () => {
  const { isThere, requests } = await written(200, 200)
  expect(isThere).toBe(true)
  expect(requests.map(({ url, authorization }) => [url, authorization])).toEqual([
    ['/oauth/token', `Basic ${btoa('me:secret')}`],
    ['/-/admin/relations', 'Bearer token'],
  ])
  const { writes } = JSON.parse(requests[1]?.body ?? '')
  expect(writes.length).toBeGreaterThan(5)
  const { relations } = policy
  for (const tuple of writes)
    expect(relations && mistakeOfTuple(relations.model, tuple)).toBe(undefined)
})

test('the tuples are written again if the gateway starts late', async () => {
  expect((await written(503, 200, 503, 200, 200)).isThere).toBe(true)
})

test.each([[[401]], [[200, 403]], [[200, 404]], [[200, 422]]])(
  'a gateway that answers %j gets no second attempt',
  async (statuses) => {
    const { isThere, requests } = await written(...statuses)
    expect(isThere).toBe(false)
    expect(requests).toHaveLength(statuses.length)
  },
)
