import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const BODIES = {
  '/clients': { name: 'x', grants: ['client_credentials'] },
  '/api-keys': { name: 'x', subject: 'x' },
  '/revocations': { kind: 'subject', value: 'x' },
  '/bans': { kind: 'subject', value: 'x', seconds: 60 },
  '/limits/overrides': { limit: 'few', value: 'x', requests: 1 },
  '/limits/reset': { limit: 'few', value: 'x' },
  '/tokens': { subject: 'x' },
} as const
const PATHS = Object.keys(BODIES) as (keyof typeof BODIES)[]

describe.each(PATHS)('POST %s refuses, and writes nothing [S63]:', (path) => {
  const good = BODIES[path]
  let before: string
  beforeAll(async () => {
    before = await gateway.state()
  })

  const refused = async (
    body: unknown,
    status: number,
    code: string,
    headers?: Record<string, string>,
  ) => {
    const reply = await gateway.admin('POST', path, body, headers && { headers })
    expect(reply.status, reply.text).toBe(status)
    expect(reply.headers.get('content-type')).toBe('application/problem+json')
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.body.code).toBe(code)
    expect(await gateway.state()).toBe(before)
    return reply.body
  }

  test('unknown keys, reported by position without their value', async () => {
    const { errors } = await refused({ ...good, s3cret: 1 }, 422, 'invalid_input')
    expect(errors).toEqual([{ in: 'body', path: '', message: 'Unknown keys are not allowed' }])
  })

  test.each(Object.keys(good))('a body without %s', async (name) => {
    const body = { ...good, [name]: undefined }
    const { errors } = await refused(body, 422, 'invalid_input')
    expect(errors[0]).toMatchObject({ in: 'body', path: `/${name}` })
  })

  test.each(Object.keys(good))('%s of any wrong type', async (name) => {
    for (const wrong of [null, true, [], [[]], {}, '', 'x'.repeat(5_000), -1, 1.5]) {
      const { errors } = await refused({ ...good, [name]: wrong }, 422, 'invalid_input')
      expect(errors[0].in).toBe('body')
    }
  })

  test('a body that is not a JSON object, has duplicate names, or is nested too deep', async () => {
    for (const body of ['[]', '"x"', 'null', '1']) await refused(body, 422, 'invalid_input')
    for (const body of ['', '{', "{'a':1}", '\ufeff{}', `${'['.repeat(40)}${']'.repeat(40)}`])
      await refused(body, 400, 'malformed_request')
    const [name = '', value] = Object.entries(good)[0] ?? []
    const twice = `{"${name}":${JSON.stringify(value)},${JSON.stringify(good).slice(1)}`
    await refused(twice, 400, 'malformed_request')
  })

  test('another media type, a charset, and a body that is too long', async () => {
    const json = JSON.stringify(good)
    for (const type of ['text/plain', 'application/json; charset=latin1', 'application/xml'])
      await refused(json, 415, 'unsupported_media_type', { 'Content-Type': type })
    await refused(json, 415, 'unsupported_media_type', { 'Content-Encoding': 'gzip' })
    const long = JSON.stringify({ ...good, name: 'x'.repeat(70_000) })
    await refused(long, 413, 'payload_too_large')
  })

  test('prototype keys', async () => {
    const body = `{"__proto__":{"kind":"subject"},${JSON.stringify(good).slice(1)}`
    await refused(body, 400, 'malformed_request')
  })
})

describe('names that no token can carry are refused [S17]', () => {
  test.each(['a\u0000b', 'line\nbreak', '\ud800', ' padded', 'padded ', '\u2028', '\u0085'])(
    '%j',
    async (value) => {
      for (const [path, body] of [
        ['/revocations', { kind: 'subject', value }],
        ['/bans', { kind: 'subject', value, seconds: 9 }],
        ['/api-keys', { name: 'x', subject: value }],
        ['/tokens', { subject: value }],
        ['/tokens', { subject: 'x', roles: [value] }],
        ['/limits/reset', { limit: 'few', value }],
      ] as const)
        expect((await gateway.admin('POST', path, body)).status, path).toBe(422)
    },
  )
})

describe('lists', () => {
  const LISTS = ['/clients', '/api-keys', '/revocations', '/bans', '/limits', '/audit']
  test.each(LISTS)('GET %s refuses an invalid page', async (path) => {
    for (const query of [
      'limit=0',
      'limit=201',
      'limit=-1',
      'limit=1.0',
      'limit=1e1',
      'limit=+5',
      'limit=',
      'limit=5&limit=5',
      'cursor=',
      'cursor=%00',
      'cursor=../../etc',
      'offset=1',
      '__proto__=1',
    ]) {
      const reply = await gateway.admin('GET', `${path}?${query}`)
      expect(reply.status, `${path}?${query}`).toBe(422)
      expect(reply.body.errors[0].in).toBe('query')
    }
  })

  test.each(LISTS.filter((path) => path !== '/audit'))(
    'GET %s accepts every valid page',
    async (path) => {
      for (const query of ['', '?limit=1', '?limit=200', `?cursor=${crypto.randomUUID()}`]) {
        const reply = await gateway.admin('GET', path + query)
        expect(reply.status, reply.text).toBe(200)
        expect(reply.headers.get('cache-control')).toBe('no-store')
      }
    },
  )
})

describe('paths', () => {
  test.each(['x', '1', '%252e', '00000000-0000-0000-0000', '*', 'null'])(
    'an invalid id is 422: %s',
    async (id) => {
      for (const path of ['/revocations', '/bans', '/limits/overrides', '/api-keys', '/clients'])
        expect([400, 422]).toContain((await gateway.admin('DELETE', `${path}/${id}`)).status)
    },
  )

  test('an unknown path is 404, and a wrong method is 405 with the allowed methods [S49]', async () => {
    for (const path of ['', '/', '/nothing', '/clients/x/y/z', '/Clients'])
      expect((await gateway.admin('GET', path)).status).toBe(404)
    const reply = await gateway.admin('PUT', '/bans', {})
    expect(reply.status).toBe(405)
    expect(reply.headers.get('allow')).toBe('GET, HEAD, POST')
    expect((await gateway.admin('GET', '/tokens')).headers.get('allow')).toBe('POST')
    expect((await gateway.admin('POST', '/keys', {})).status).toBe(405)
  })

  test('an id is accepted in upper and lower case', async () => {
    const { id } = (await gateway.admin('POST', '/bans', { ...BODIES['/bans'], value: 'case' }))
      .body
    expect((await gateway.admin('DELETE', `/bans/${id.toUpperCase()}`)).status).toBe(204)
  })

  test('a body on a call that takes none is 413', async () => {
    const reply = await gateway.admin('DELETE', `/bans/${crypto.randomUUID()}`, {})
    expect(reply.status).toBe(413)
  })
})
