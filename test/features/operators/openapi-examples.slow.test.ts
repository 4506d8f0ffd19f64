/** The OpenAPI document matches the gateway that serves it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import shipped from '../../../portcullis.config.ts'
import { policy, policyOf, startGateway, type TestGateway } from './gateway.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
type Json = any

/** Returns the names of components that no `$ref` in the document refers to. */
function unusedIn(document: Json): string[] {
  const text = JSON.stringify(document)
  const { schemas, responses, securitySchemes } = document.components
  const unused = Object.entries({ schemas, responses }).flatMap(([kind, all]) =>
    Object.keys(all).filter((name) => !text.includes(`"$ref":"#/components/${kind}/${name}"`)),
  )
  const schemes = Object.keys(securitySchemes).filter((name) => !text.includes(`{"${name}":[]}`))
  return [...unused, ...schemes]
}

describe.each([
  ['that ships', shipped],
  ['of the tests', policy],
  ['without relations', policyOf({})],
] as const)('the document of a gateway with the policy %s', (_, under) => {
  let gateway: TestGateway
  let document: Json
  beforeAll(async () => {
    gateway = await startGateway({ policy: under })
    document = (await gateway.send('/-/openapi.json')).body
  })
  afterAll(() => gateway.close())

  const operations = () =>
    Object.entries<Record<string, Json>>(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method: method.toUpperCase(),
        operation,
      })),
    )
  const examples = () =>
    operations().flatMap(({ path, method, operation }) =>
      Object.entries<Json>(operation.requestBody?.content ?? {}).map(([type, { example }]) => ({
        path,
        method,
        type,
        example,
      })),
    )

  test('has an example for every body, and the gateway accepts each one', async () => {
    expect(examples().length).toBeGreaterThan(under.relations === undefined ? 12 : 15)
    const described = { name: 'x', grants: ['client_credentials'] }
    const { clientId, clientSecret } = (await gateway.admin('POST', '/clients', described)).body
    const key = (await gateway.admin('POST', '/api-keys', { name: 'x', subject: 'x' })).body
    for (const { path, method, type, example } of examples()) {
      const at = path.replace('{clientId}', clientId).replace('{id}', key.id)
      const isForm = type === 'application/x-www-form-urlencoded'
      const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
      // Called last for the client, because it replaces the secret.
      if (path.endsWith('{clientId}/secret')) continue
      const reply = await gateway.send(at, {
        method,
        headers: {
          'Content-Type': type,
          Authorization: isForm ? `Basic ${basic}` : `Bearer ${gateway.operator}`,
        },
        body: isForm ? new URLSearchParams(example).toString() : JSON.stringify(example),
      })
      const message = `${method} ${at} ${JSON.stringify(example)}: ${reply.status} ${reply.text}`
      expect(reply.status, message).not.toBe(422)
      // This gateway has no audit database, which it reports only for valid orders.
      if (path.startsWith('/-/admin/audit/')) expect(reply.status, message).toBe(503)
      // The example of a leaked key is no key of this gateway.
      else if (path.endsWith('/api-key-lookups')) expect(reply.status, message).toBe(404)
      else expect(reply.status, message).toBeLessThan(300)
    }
    const rotation = `/clients/${clientId}/secret`
    const { example } = examples().find(({ path }) => path.endsWith('{clientId}/secret')) ?? {}
    expect((await gateway.admin('POST', rotation, example)).status).toBe(200)
  })

  test('has no component that nothing refers to', () => {
    expect(unusedIn(document)).toEqual([])
  })

  const body = (path: string) =>
    document.paths[path].post.requestBody.content['application/json'].schema.properties
  const query = (path: string, name: string) =>
    document.paths[path].get.parameters.find((one: Json) => one.name === name).schema

  test('has patterns for objects and relations, or no calls about relations', () => {
    if (under.relations === undefined) {
      expect(Object.keys(document.paths).join()).not.toMatch(/relations|check|expand/)
      return
    }
    const { object, relation, subject } = body('/-/admin/check')
    const objects = ['order:7', 'a:b', 'order:%3A', 'order:é', 'order:a@b', 'order:%E2%80%8B']
    const bad = ['order', ':7', 'order:', 'order:a b', 'order:a:b', 'order:*', 'o:\n']
    for (const text of objects) expect(text).toMatch(new RegExp(object.pattern))
    for (const text of bad) expect(text).not.toMatch(new RegExp(object.pattern))
    for (const text of [...objects, 'user:*', 'team:a#member'])
      expect(text).toMatch(new RegExp(subject.pattern))
    for (const text of ['user:*#x', 'team:a#', 'team:a#b#c', 'x'])
      expect(text).not.toMatch(new RegExp(subject.pattern))
    expect('can_approve').toMatch(new RegExp(relation.pattern))
    expect('0').not.toMatch(new RegExp(relation.pattern))
    expect(query('/-/admin/relations', 'object').pattern).toMatch(/\^\[A-Za-z_\]/)
    const { pattern } = query('/-/admin/relations', 'cursor')
    expect('b3JkZXI6Nw').toMatch(new RegExp(pattern))
    expect('a b').not.toMatch(new RegExp(pattern))
  })

  test('has patterns for names and cursors that accept what the calls accept', () => {
    for (const [path, good, wrong] of [
      ['/-/admin/clients', 'configured:3', '0'],
      ['/-/admin/api-keys', '01a204c1-313d-7ae1-974c-8d653d66173f', '0'],
    ] as const) {
      const { pattern } = query(path, 'cursor')
      expect(good, path).toMatch(new RegExp(pattern))
      expect(wrong, path).not.toMatch(new RegExp(pattern))
    }
    const { name, tenant } = body('/-/admin/api-keys')
    for (const { pattern } of [name, tenant]) {
      for (const text of ['a', 'é b', '😀', 'a\u200bb']) expect(text).toMatch(new RegExp(pattern))
      for (const text of ['', ' a', 'a ', 'a\u0000', 'a\u0085b', '\u2028', '\u00a0', 'a\ufeff'])
        expect(text).not.toMatch(new RegExp(pattern))
    }
  })

  test('distinguishes a disabled client from an active one', async () => {
    const described = { name: 'x', grants: ['client_credentials'] }
    const { clientId } = (await gateway.admin('POST', '/clients', described)).body
    expect((await gateway.admin('GET', `/clients/${clientId}`)).status).toBe(200)
    expect((await gateway.admin('DELETE', `/clients/${clientId}`)).status).toBe(204)
    const gone = await gateway.admin('GET', `/clients/${clientId}`)
    expect(gone.status).toBe(404)
    const answers = document.paths['/-/admin/clients/{clientId}'].get.responses
    expect(Object.keys(answers)).toContain('404')
  })
})

test('the document of a gateway without an authorization server has no unused component', async () => {
  const gateway = await startGateway({ signs: false })
  try {
    const { body } = await gateway.send('/-/openapi.json')
    expect(Object.keys(body.components.responses)).toContain('Problem404')
    expect(unusedIn(body)).toEqual([])
  } finally {
    await gateway.close()
  }
})
