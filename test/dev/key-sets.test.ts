/** The complaints of `npm start` about key sets, with real servers. */
import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { keySetComplaints } from '../../dev/start/key-sets.ts'
import { parseConfig } from '../../src/features/environment.ts'
import { issuers } from '../../src/validators/issuer.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey } from '../harness/issuer.ts'
import { freePort } from '../harness/process.ts'

const ISSUER = 'https://idp.example.com'
const never = new AbortController().signal

let server: TestServer | undefined
afterEach(() => server?.close())

const complaintsAt = (...uris: string[]) =>
  keySetComplaints(
    issuers.parse(
      uris.map((jwksUri, index) => ({
        issuer: index === 0 ? ISSUER : `${ISSUER}/${index}`,
        audience: 'api',
        jwksUri,
      })),
    ),
    never,
  )

async function complaintsOf(answer: (response: ServerResponse) => void) {
  server = await startHttpServer((_request, response) => answer(response))
  const found = await complaintsAt(`${server.url}/keys?token=hush`)
  const start = `ISSUERS: ${ISSUER}: jwksUri ${server.url}/keys `
  return found.map((line) => (line.startsWith(start) ? line.slice(start.length) : line))
}

const key = await createKey('one')

describe('a complaint names a key set that', () => {
  test.each<[string, number, string, string]>([
    ['responds with an error status', 404, 'hush', 'responds with status 404'],
    ['redirects', 302, 'hush', 'responds with status 302; redirects are not followed'],
    ['responds with a page', 200, '<html>hush</html>', 'responds with text that is not JSON'],
    [
      'responds with another document',
      200,
      '{"hush":1}',
      'responds with JSON that is not a JWK Set',
    ],
    [
      'is empty',
      200,
      '{"keys":[]}',
      'has no key that can be used for RS256, PS256, ES256, Ed25519, EdDSA',
    ],
    ['is too long', 200, ' '.repeat(262_145), 'responds with more than 262144 bytes'],
  ])('%s', async (_what, status, body, why) => {
    expect(await complaintsOf((response) => response.writeHead(status).end(body))).toEqual([why])
  })

  test('does not respond in time', async () => {
    expect(await complaintsOf((response) => response.writeHead(200).flushHeaders())).toEqual([
      'does not respond within 2000 ms',
    ])
  })

  test('is not available, and no key set that is available or inline', async () => {
    const set = { keys: [key.publicJwk] }
    expect(await complaintsOf((response) => response.end(JSON.stringify(set)))).toEqual([])
    const [inline] = issuers.parse([{ issuer: ISSUER, audience: 'api', jwks: set }])
    expect(await keySetComplaints(inline ? [inline] : [], never)).toEqual([])
  })

  test('is waited for, and none of an issuer that needs no keys', async () => {
    const issuer = `http://127.0.0.1:${await freePort()}`
    const config = {
      UPSTASH_REDIS_REST_URL: 'https://redis.example',
      UPSTASH_REDIS_REST_TOKEN: 'x',
      PUBLIC_URL: 'https://gateway.example',
      ORIGIN_URL: 'https://origin.example',
    }
    const complaints = (entry: object, client: object) =>
      keySetComplaints(
        parseConfig({
          ...config,
          ISSUERS: JSON.stringify([{ issuer, audience: 'api', ...entry }]),
          ISSUER_CLIENTS: JSON.stringify([{ issuer, id: 'gateway', secret: 's', ...client }]),
        }).issuers,
        never,
      )
    const signIn = { name: 'x' }
    expect(await complaints({}, { signIn: { ...signIn, preset: 'github' } })).toEqual([])
    expect(await complaints({ introspection: {} }, {})).toEqual([])
    expect(await complaints({}, { signIn })).toHaveLength(1)
    const jwksUri = `${issuer}/keys`
    const named = await complaints({ jwksUri }, { signIn: { ...signIn, preset: 'github' } })
    expect(named).toEqual([expect.stringContaining(`jwksUri ${jwksUri} cannot be reached`)])
  })

  test('belongs to one of several issuers, with the name of that issuer', async () => {
    const unreachable = `http://127.0.0.1:${await freePort()}/keys`
    expect(await complaintsAt(unreachable, 'https://no-such-host.invalid/keys')).toEqual([
      `ISSUERS: ${ISSUER}: jwksUri ${unreachable} cannot be reached (ECONNREFUSED)`,
      expect.stringMatching(
        /^ISSUERS: \S+\/1: jwksUri https:\/\/no-such-host\.invalid\/keys has an unknown host \((ENOTFOUND|EAI_AGAIN)\)$/,
      ),
    ])
  })

  test('is not found in the metadata of its issuer', async () => {
    const bodies: Record<string, string> = {}
    server = await startHttpServer((request, response) => {
      const body = bodies[request.url ?? '']
      response.writeHead(body === undefined ? 404 : 200).end(body)
    })
    const { url } = server
    const complaint = async () =>
      await keySetComplaints(issuers.parse([{ issuer: url, audience: 'api' }]), never)
    const openid = '/.well-known/openid-configuration'
    const oauth = '/.well-known/oauth-authorization-server'
    const absent = `metadata ${url}${oauth} responds with status 404`
    expect(await complaint()).toEqual([
      `ISSUERS: ${url}: metadata ${url}${openid} responds with status 404; ${absent}`,
    ])
    bodies[openid] = '<html>'
    expect(await complaint()).toEqual([
      `ISSUERS: ${url}: metadata ${url}${openid} is not valid JSON; ${absent}`,
    ])
    bodies[openid] = JSON.stringify({ issuer: `${url}/`, jwks_uri: `${url}/keys` })
    expect(await complaint()).toEqual([
      `ISSUERS: ${url}: metadata ${url}${openid} has the issuer "${url}/", expected "${url}"; ${absent}`,
    ])
    bodies[openid] = JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` })
    expect(await complaint()).toEqual([
      `ISSUERS: ${url}: jwks_uri ${url}/keys responds with status 404`,
    ])
    bodies['/keys'] = JSON.stringify({ keys: [key.publicJwk] })
    expect(await complaint()).toEqual([])
  })
})
