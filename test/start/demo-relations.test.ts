import { afterEach, expect, test } from 'vitest'
import policy from '#policy'
import { writeDemoRelations } from '../../dev/start/demo-relations.ts'
import { mistakeOfTuple } from '../../src/relations/permitted.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

const OPERATOR = { PORTCULLIS_CLIENT_ID: 'me', PORTCULLIS_CLIENT_SECRET: 'secret' }

let gateway: TestServer | undefined
afterEach(() => gateway?.close())

/**
 * Starts a gateway that answers with these responses. Returns its requests and whether the tuples
 * exist at the end.
 */
async function written(...statuses: readonly number[]) {
  const asked: { url: string | undefined; authorization: string | undefined; body: string }[] = []
  gateway = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { authorization } = request.headers
    asked.push({ url: request.url, authorization, body: Buffer.concat(chunks).toString() })
    response.statusCode = statuses[asked.length - 1] ?? 500
    response.end('{"access_token":"token"}')
  })
  return { isThere: await writeDemoRelations(gateway.url, OPERATOR), asked }
}

test('the operator of the checkout writes the demo’s tuples, and the model permits each of them', async () => {
  const { isThere, asked } = await written(200, 200)
  expect(isThere).toBe(true)
  expect(asked.map(({ url, authorization }) => [url, authorization])).toEqual([
    ['/oauth/token', `Basic ${btoa('me:secret')}`],
    ['/-/admin/relations', 'Bearer token'],
  ])
  const { writes } = JSON.parse(asked[1]?.body ?? '')
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
    const { isThere, asked } = await written(...statuses)
    expect(isThere).toBe(false)
    expect(asked).toHaveLength(statuses.length)
  },
)
