import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER } from '../../harness/issuer.ts'
import { call, type McpGateway, PAGE, PUBLIC_URL, request, startMcpGateway } from './gateway.ts'

const METADATA = `resource_metadata="${PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"`

let gateway: McpGateway
beforeAll(async () => {
  gateway = await startMcpGateway()
})
afterAll(() => gateway?.close())

describe('the metadata of an MCP server (RFC 9728)', () => {
  test('it names the URL of the server itself, its issuers and its scopes', async () => {
    const response = await gateway.fetch('/.well-known/oauth-protected-resource/mcp')
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual(
      expect.objectContaining({
        resource: `${PUBLIC_URL}/mcp`,
        // The gateway itself cannot log users in: it has no authorizationCode().
        authorization_servers: [ISSUER],
        scopes_supported: ['mcp:use', 'books:read', 'books:delete'],
        bearer_methods_supported: ['header'],
      }),
    )
  })

  test('the metadata of the gateway keeps its own URL', async () => {
    const response = await gateway.fetch('/.well-known/oauth-protected-resource')
    expect(await response.json()).toEqual(expect.objectContaining({ resource: PUBLIC_URL }))
    const other = await gateway.fetch('/.well-known/oauth-protected-resource/other')
    expect(other.status).toBe(404)
  })

  test('pages of any origin may read it, without credentials', async () => {
    const path = '/.well-known/oauth-protected-resource/mcp'
    const headers = { Origin: 'https://any.test' }
    const response = await gateway.fetch(path, { headers })
    expect(response.headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(response.headers.get('Access-Control-Allow-Credentials')).toBeNull()
    const preflight = await gateway.fetch(path, {
      method: 'OPTIONS',
      headers: {
        ...headers,
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'mcp-protocol-version',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('MCP-Protocol-Version')
  })

  test('pages of other origins may not read the documents of the gateway', async () => {
    for (const name of ['oauth-protected-resource', 'jwks.json']) {
      const headers = { Origin: 'https://any.test' }
      const response = await gateway.fetch(`/.well-known/${name}`, { headers })
      expect(response.headers.get('Access-Control-Allow-Origin')).toBeNull()
    }
  })
})

describe('challenges', () => {
  test('401 names the metadata and the scopes of the server', async () => {
    const response = await gateway.send(request('ping'), { Authorization: undefined })
    expect(response.status).toBe(401)
    expect(response.headers.get('WWW-Authenticate')).toBe(
      `Bearer realm="portcullis", ${METADATA}, scope="mcp:use"`,
    )
    expect(gateway.received).toEqual([])
  })

  test('401 for an invalid token keeps its error', async () => {
    const response = await gateway.send(request('ping'), { Authorization: 'Bearer a.b.c' })
    expect(response.headers.get('WWW-Authenticate')).toBe(
      `Bearer realm="portcullis", error="invalid_token", ${METADATA}, scope="mcp:use"`,
    )
  })

  test('403 names the scopes that the token has and that the call needs, for another login', async () => {
    const token = await gateway.token('libby', ['librarian'], {
      scope: 'openid mcp:use books:read',
    })
    const response = await gateway.send(call('remove_book', { isbn: '1' }), {
      Authorization: `Bearer ${token}`,
    })
    expect(response.status).toBe(403)
    expect(response.headers.get('WWW-Authenticate')).toBe(
      `Bearer realm="portcullis", error="insufficient_scope", scope="mcp:use books:read books:delete", ${METADATA}`,
    )
    expect(gateway.received).toEqual([])
  })

  test('403 names no scope if the roles of the caller do not allow the call either', async () => {
    const response = await gateway.send(call('remove_book', { isbn: '1' }))
    expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([403, null])
    expect(gateway.received).toEqual([])
  })

  test('403 for a tool that no scope allows has no challenge', async () => {
    const response = await gateway.send(call('unknown'))
    expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([403, null])
  })

  test('with `scopes: []` no response names a scope', async () => {
    const other = await startMcpGateway({ scopes: [] })
    const anonymous = await other.send(request('ping'), { Authorization: undefined })
    expect(anonymous.headers.get('WWW-Authenticate')).toBe(`Bearer realm="portcullis", ${METADATA}`)
    const refused = await other.send(call('remove_book'))
    expect([refused.status, refused.headers.get('WWW-Authenticate')]).toEqual([403, null])
    const document = await other.fetch('/.well-known/oauth-protected-resource/mcp')
    expect(await document.json()).not.toHaveProperty('scopes_supported')
    await other.close()
  })

  test('a page that the policy allows can read the challenge and the session', async () => {
    const response = await gateway.send(request('ping'), { Origin: PAGE, Authorization: undefined })
    expect(response.headers.get('Access-Control-Allow-Origin')).toBe(PAGE)
    const exposed = response.headers.get('Access-Control-Expose-Headers') ?? ''
    expect(exposed).toContain('WWW-Authenticate')
    expect(exposed).toContain('Mcp-Session-Id')
    const preflight = await gateway.fetch('/mcp', {
      method: 'OPTIONS',
      headers: { Origin: PAGE, 'Access-Control-Request-Method': 'POST' },
    })
    expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('Mcp-Session-Id')
  })
})
