/** `portcullis explain` in a project, without a gateway. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createIssuer } from 'portcullis/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testInLong } from '../harness/long.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { runCli } from './command-line.ts'

const POLICY = `
import { definePolicy } from 'portcullis'
import { origins } from 'portcullis/origins'
export default definePolicy({
  roles: { reader: ['orders:read'], writer: ['orders:*'] },
  limits: { standard: '100/min' },
  origins: origins({ books: { url: 'https://books.internal' } }),
  routes: [
    { method: 'GET', path: '/books', host: '*.shop.example', origin: 'books', anonymous: true },
    { method: 'GET', path: '/orders/:id', permission: 'orders:read', limits: ['standard'] },
    { method: 'POST', path: '/orders', permission: 'orders:write' },
  ],
})
`
let project: Awaited<ReturnType<typeof makeNodeProject>>
beforeAll(async () => {
  project = await makeNodeProject(POLICY)
  writeFileSync(join(project.folder, 'wrong.ts'), 'export default { routes: [] }')
})
afterAll(() => project?.close())

const explain = (args: readonly string[], input = '') =>
  runCli(['explain', ...args], { cwd: project.folder, input })

describe('explain', () => {
  test('prints each stage, and what the origin would get', async () => {
    const { code, stdout, stderr } = await explain([
      'GET',
      '/orders/1',
      '--subject',
      'alice',
      '--role',
      'reader',
      '--address',
      '198.51.100.7',
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^allowed: GET \/orders\/1 is 200, ok, by the route \/orders\/:id$/m)
    expect(stdout).toMatch(/^authorize +passed +reader has the permission orders:read/m)
    expect(stdout).toMatch(/^admit +passed .+ standard \(99 of 100 left\)$/m)
    expect(stdout).toMatch(/^The origin gets GET \/orders\/1$/m)
    expect(stdout).toMatch(/^ {2}x-auth-subject: alice$/m)
    expect(stdout).toMatch(/^ {2}x-forwarded-for: 198\.51\.100\.7$/m)
  })

  testInLong('finds the route of a host', async () => {
    const found = await explain(['GET', '/books', '--host', 'api.shop.example'])
    expect(found.code).toBe(0)
    expect(found.stdout).toMatch(/^allowed: GET \/books is 200, ok, by the route \/books$/m)
    const byHeader = await explain(['GET', '/books', '--header', 'Host: b.shop.example', '--json'])
    expect(JSON.parse(byHeader.stdout)).toMatchObject({ status: 200 })
    expect((await explain(['GET', '/books'])).stdout).toMatch(/^refused: .+ is 404, not_found/m)
  })

  testInLong('remarks on a role that the policy does not have', async () => {
    const { stderr } = await explain(['GET', '/orders/1', '--role', 'raeder'])
    expect(stderr).toBe('The policy has no role raeder; did you mean "reader"?\n')
  })

  test('ends with 1 for a refused request, and says which role has the permission', async () => {
    // The earlier name of `--subject`.
    const { code, stdout } = await explain([
      'POST',
      '/orders',
      '--as',
      'alice',
      '--role',
      'reader',
      '--body',
      '{}',
      '--json',
    ])
    expect(code).toBe(1)
    const explained = JSON.parse(stdout)
    expect(explained).toMatchObject({ decision: 'deny', reason: 'permission_missing:orders:write' })
    expect(explained.stages).toContainEqual(
      expect.objectContaining({
        stage: 'authenticate',
        read: expect.objectContaining({ subject: 'alice' }),
      }),
    )
    expect(explained.stages.at(-1)).toMatchObject({
      stage: 'authorize',
      why: 'the caller does not have the permission orders:write; it is of writer',
    })
  })

  test('describes a token and never prints it', async () => {
    const issuer = await createIssuer({ issuer: 'https://idp.example', audience: 'other' })
    const token = await issuer.token({ sub: 'bob', roles: ['reader'] })
    const { code, stdout, stderr } = await explain(['GET', '/orders/1', '--token-stdin'], token)
    expect(code).toBe(0)
    expect(stdout).toMatch(/issuer https:\/\/idp\.example, subject bob/)
    expect(stderr).toMatch(/signature, issuer and audience of the token are not verified/)
    expect(stdout + stderr).not.toContain(token.split('.')[2])
    const expired = await issuer.token({ sub: 'bob', roles: ['reader'], expiresInSeconds: -60 })
    expect((await explain(['GET', '/orders/1', '--token-stdin'], expired)).stdout).toContain(
      'token_rejected:exp',
    )
  })

  test('refuses a credential that is not a JWT, and does not repeat it', async () => {
    const { code, stderr } = await explain(['GET', '/orders/1', '--token-stdin'], 'pk_secret')
    expect(code).toBe(2)
    expect(stderr).toContain('only --live can explain opaque tokens and API keys')
    expect(stderr).not.toContain('pk_secret')
  })

  testInLong.each([
    [[], 'name the method and the path of the request'],
    [['GET', 'orders'], 'must have the form "GET /path"'],
    [['GET', '/orders/1', '--token-stdin', '--role', 'x'], '--token-stdin cannot be combined'],
    [['GET', '/orders/1', '--header', 'Accept'], '--header must be'],
    [['GET', '/orders/1', '--relation', 'x'], '--relation must be object#relation@subject'],
    [['GET', '/orders/1', '--policy', 'none.ts'], 'there is no file'],
    [['GET', '/orders/1', '--policy', 'wrong.ts'], 'must be the default export'],
    [['GET', '/-/healthz'], 'a path of the gateway'],
  ])('refuses %j with a sentence', async (args, message) => {
    const { code, stdout, stderr } = await explain(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })
})
