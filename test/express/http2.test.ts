/** `portcullis/express` on a server of HTTP/2, whose bodies have no `Transfer-Encoding`. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ConnectRequest, ConnectResponse } from '../../src/express/connect.ts'
import { portcullis } from '../../src/express/index.ts'
import { type Surroundings, surroundings } from '../hono/app.ts'

let given: Surroundings
let session: ClientHttp2Session
let authorization: string
const reached: number[] = []
const ends: (() => unknown)[] = []

beforeAll(async () => {
  given = await surroundings()
  authorization = (await given.bearer()).Authorization
  const { clientAddress, ...options } = given.options
  const guard = portcullis({ ...options, maxBodyBytes: 50 })
  const server = createServer((req, res) =>
    guard(req as unknown as ConnectRequest, res as unknown as ConnectResponse, () => {
      let bytes = 0
      // A refused body ends without `end`.
      req.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      req.once('end', () => {
        reached.push(bytes)
        res.end(String(bytes))
      })
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  ends.push(
    () => session.destroy(),
    () => server.close(),
  )
})
afterAll(async () => {
  for (const end of ends) await end()
  await given?.redis.close()
})

/** Returns the status of a request whose body is sent without a length. */
async function statusOf(method: string, ...chunks: string[]): Promise<unknown> {
  const endStream = chunks.length === 0
  const stream = session.request(
    { ':method': method, ':path': '/notes', authorization },
    { endStream },
  )
  stream.on('error', () => {})
  for (const chunk of chunks) stream.write(chunk)
  if (!endStream) stream.end()
  const [head] = await once(stream, 'response')
  stream.resume()
  return head[':status']
}

test('a body without a length is limited', async () => {
  expect(await statusOf('POST', 'a'.repeat(20), 'a'.repeat(20))).toBe(200)
  expect(await statusOf('POST', 'a'.repeat(40), 'a'.repeat(40))).toBe(413)
  expect(await statusOf('POST')).toBe(200)
  expect(reached).toEqual([40, 0])
})

test('a request without a body is admitted, and GET with a body is refused', async () => {
  reached.length = 0
  expect(await statusOf('GET')).toBe(200)
  expect(await statusOf('GET', 'a')).toBe(400)
  expect(reached).toEqual([0])
})
