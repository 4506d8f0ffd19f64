/** Cases of reports that were tried after the first table was complete. */
import { expect } from 'vitest'
import type { Check, FieldCase } from './case.ts'
import { EVERY_RUNTIME, NODE_ONLY, type RuntimeName } from './runtimes.ts'

const HOST = 'Host: gateway.test'

const later = (
  symptom: string,
  sources: string,
  expected: string,
  proof: Check['run'] | readonly string[],
  runtimes: readonly RuntimeName[] = EVERY_RUNTIME,
): FieldCase => ({
  symptom,
  sources: sources.split(', '),
  expected,
  runtimes,
  proof: typeof proof === 'function' ? { run: proof } : { tests: proof },
})

export const laterCases: readonly FieldCase[] = [
  later(
    'a schema refuses JSON of a type that ends in +json',
    'holidayextras/jsonapi-server#17, IBM/openapi-validator#197, wso2/api-manager#3296, crnk-project/crnk-framework#561',
    'a type that ends in +json is JSON, and its body is checked (RFC 6839 section 3.1)',
    async ({ fetch, token, reached }) => {
      const authorization = `Bearer ${await token()}`
      const statusOf = async (type: string, body: string) => {
        const headers = { authorization, 'content-type': type }
        return (await fetch('/typed', { method: 'POST', headers, body })).status
      }
      for (const type of ['application/merge-patch+json', 'application/vnd.api+json; v="1"']) {
        expect(await statusOf(type, '{"text":"x"}'), type).toBe(200)
        expect(await statusOf(type, '{"text":1}'), type).toBe(422)
        expect(await statusOf(type, '{"text":"x","text":"y"}'), type).toBe(400)
      }
      expect(reached.map(({ headers }) => headers['content-type'])).toEqual([
        'application/merge-patch+json',
        'application/vnd.api+json; v="1"',
      ])
      for (const type of ['application/jsonp', 'text/x+json', 'application/xml'])
        expect(await statusOf(type, '{"text":"x"}'), type).toBe(415)
      expect(reached).toHaveLength(2)
    },
  ),
  later(
    'a client reads the code or the state of its redirect URI in place of that of the response',
    'leodip/goiabada#227, oauth-wg/oauth-v2-1#171',
    'a response has each of its parameters once, and keeps the others of the redirect URI',
    [
      'test/features/authorization-code/code-endpoints.slow.test.ts > a response has each of its parameters once, whatever the redirect URI has: %s',
    ],
  ),
  later(
    'a part of a file arrives as a whole one, or a range of an unusual form is refused',
    'Vexa-ai/vexa#642, NVIDIA/nvcf#1338, demarche-numerique/ds_proxy#163',
    'Range and If-Range reach the origin unchanged, and its status and fields the client (RFC 9110 section 14)',
    async ({ raw, answerWith, reached }) => {
      const parts = [
        [206, 'bytes=0-1', { 'content-range': 'bytes 0-1/10', 'accept-ranges': 'bytes' }],
        [206, 'bytes=0-1,4-5', { 'content-type': 'multipart/byteranges; boundary=x' }],
        [416, 'bytes=99-', { 'content-range': 'bytes */10' }],
        [200, 'bytes=0--1', { etag: '"b"' }],
      ] as const
      for (const [status, range, fields] of parts) {
        answerWith((_, response) => response.writeHead(status, fields).end('ab'))
        const lines = ['GET /open/file HTTP/1.1', HOST, `Range: ${range}`, 'If-Range: "a"']
        const reply = await raw(lines)
        expect([reply.status, reply.body], range).toEqual([status, 'ab'])
        for (const [name, value] of Object.entries(fields))
          expect(reply.headers.toLowerCase()).toContain(`${name}: ${value}`)
      }
      expect(reached.map(({ headers }) => [headers.range, headers['if-range']])).toEqual(
        parts.map(([, range]) => [range, '"a"']),
      )
    },
  ),
  later(
    'a cache or a conditional request turns a refusal into 304, or serves it to the next caller',
    'remotestorage/spec#140, http-tests/cache-tests#180',
    'conditions are for the origin (RFC 9110 section 13.2.1), and a refusal is not stored',
    async ({ raw, token, reached }) => {
      const conditions = ['If-None-Match: *', 'If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT']
      const reader = `Authorization: Bearer ${await token({ claims: { roles: ['reader'] } })}`
      for (const [status, lines] of [
        [401, ['GET /notes HTTP/1.1', HOST]],
        [401, ['HEAD /notes HTTP/1.1', HOST]],
        [403, ['POST /notes HTTP/1.1', HOST, 'Content-Length: 0', reader]],
        [404, ['GET /nothing HTTP/1.1', HOST]],
        [405, ['DELETE /notes HTTP/1.1', HOST]],
      ] as const) {
        const reply = await raw([...lines, ...conditions])
        expect(reply.status).toBe(status)
        expect(reply.headers).toMatch(/^cache-control: no-store\r?$/im)
      }
      expect(reached).toEqual([])
    },
  ),
  later(
    'HEAD of a page that exists is 405, although Allow names it',
    'koala73/worldmonitor#7275, cloudflare/privacypass-issuer#16, letsencrypt/boulder#858, restlet/restlet-framework-java#266',
    'HEAD is what GET is, also for credentials, and Allow names both (RFC 9110 section 9.3.2)',
    async ({ raw, token, reached }) => {
      const authorization = `Authorization: Bearer ${await token()}`
      expect((await raw(['HEAD /notes HTTP/1.1', HOST, authorization])).status).toBe(200)
      expect(reached.map(({ method }) => method)).toEqual(['HEAD'])
      expect((await raw(['HEAD /notes HTTP/1.1', HOST])).status).toBe(401)
      const { status, headers } = await raw(['OPTIONS /notes HTTP/1.1', HOST])
      expect([status, /^allow: (.*?)\r?$/im.exec(headers)?.[1]]).toEqual([405, 'GET, HEAD, POST'])
    },
  ),
  later(
    'a token whose issuer differs by a slash is accepted, or a configured slash is removed',
    'authlib/joserfc#90, coreos/go-oidc#203, lsst-sqre/gafaelfawr#1431, erlef/oidcc#349',
    'iss is compared character by character (OpenID Connect Discovery section 4.3)',
    async ({ fetch, token, reached }) => {
      for (const iss of [
        'https://issuer.test/',
        'HTTPS://issuer.test',
        'https://issuer.test:443',
      ]) {
        const authorization = `Bearer ${await token({ claims: { iss } })}`
        expect((await fetch('/notes', { headers: { authorization } })).status, iss).toBe(401)
      }
      expect(reached).toEqual([])
    },
  ),
  later(
    'a proof of possession fails behind a proxy, with a query or another spelling of the same URL',
    'keycloak/keycloak#39332, panva/node-oidc-provider#572, FHIDev/Fhi.HelseId#462, better-auth/better-auth#10799',
    'htu is compared with the public URL after normalization, without query and fragment (RFC 9449 section 4.3)',
    [
      'test/access/tokens/dpop-target.test.ts > %s is the target of %s',
      'test/access/tokens/dpop-target.test.ts > %s is not the target of %s',
    ],
  ),
  later(
    'a return path with a backslash, white space or an encoded slash leads to another host',
    'ploxiln/oauth2_proxy#50, bitly/oauth2_proxy#478, DeliciousBuding/DiffAudit-Platform#39, openshift/oauth-proxy#374',
    'the browser returns to a path of this host, or to the start page',
    ['test/features/sign-in/return-path.test.ts > everything else leads to the start page [S76]'],
  ),
  later(
    'a page without an origin of its own reads responses with credentials',
    'netty/netty#3436, ag-ui-protocol/ag-ui#2548, OWASP/ASVS#3322',
    'the origin null is never one of the rules',
    [
      'test/features/cors/wire.slow.test.ts > with %s, the response has no CORS headers, but varies by the origin',
    ],
  ),
  later(
    'a script of a page gets a form of a login, or a redirect, in place of 401',
    'oauth2-proxy/oauth2-proxy#1522, oauth2-proxy/oauth2-proxy#1322',
    'only navigations are sent to the sign-in',
    ['test/features/sign-in/refused-navigations.slow.test.ts > is a problem document for %s'],
  ),
  later(
    'one invalid opaque token, sent again and again, causes a call to its issuer each time',
    'zmartzone/lua-resty-openidc#523, GluuFederation/gluu-gateway#213',
    'an inactive token is refused without a call for 10 seconds',
    [
      'test/features/introspection/responses.slow.test.ts > an inactive token is refused without a call for 10 seconds',
    ],
  ),
  later(
    'a silent renewal with max_age shows a page, or prompt=none shows one',
    'DuendeArchive/IdentityServer4#4002, juanifioren/django-oidc-provider#87, IdentityServer/IdentityServer3#2696',
    'login_required or consent_required at the redirect URI (OpenID Connect Core section 3.1.2.1)',
    ['test/features/authorization-code/code-endpoints.slow.test.ts > prompt=none shows no page'],
  ),
  later(
    'a misspelled variable of the environment is ignored and not reported',
    'lldap/lldap#972',
    'the start and the check of the configuration name it, and the one that was meant',
    [
      'test/runtimes/node/unread-variables.test.ts > the gateway names a variable that it does not read',
    ],
    NODE_ONLY,
  ),
  later(
    'the server prints an error of the system if its port is in use',
    'lowdefy/lowdefy#276, WordPress/wordpress-playground#3237, ember-cli/ember-cli#1306, tinacms/tinacms#1969',
    'what is in use, and the option that changes it',
    ['test/cli/listen-failure.test.ts > a port that is in use is named, with what to do'],
    NODE_ONLY,
  ),
  later(
    'Retry-After is in milliseconds, a fraction, a time or zero, or HEAD does not have it',
    'fastify/fastify-rate-limit#301, cloudfoundry/cloud_controller_ng#2544, SpaceTradersAPI/api-docs#24, spotify/web-api#542, hashicorp/boundary#4094',
    'whole seconds until the next request may pass, rounded up (RFC 9110 section 10.2.3)',
    async ({ raw, token, reached }) => {
      const authorization = `Authorization: Bearer ${await token()}`
      for (const status of [200, 200, 429, 429]) {
        const reply = await raw(['HEAD /seldom HTTP/1.1', HOST, authorization])
        expect([reply.status, reply.body]).toEqual([status, ''])
        const wait = /^retry-after: (\d+)\r?$/im.exec(reply.headers)?.[1]
        if (status === 200) expect(wait).toBeUndefined()
        else {
          expect(Number(wait)).toBeGreaterThan(0)
          expect(Number(wait)).toBeLessThanOrEqual(60)
          expect(reply.headers).toMatch(new RegExp(`^ratelimit: .*r=0;t=${wait}\\r?$`, 'im'))
        }
      }
      expect(reached).toHaveLength(2)
    },
  ),
  later(
    'an exchange of tokens does not say what it issued, or blames the grant for a wrong subject token',
    'keycloak/keycloak#31715, vouch-sh/vouch#1186, apache/knox#1334, stacklok/toolhive#6331',
    'issued_token_type, and invalid_request for every subject token that is not accepted (RFC 8693 section 2.2)',
    [
      'test/features/authorization-server/grants.slow.test.ts > accepts each URN for the type of the subject token, and returns the requested token',
      'test/features/authorization-server/grants.slow.test.ts > refuses an invalid subject token, for every cause',
    ],
  ),
  later(
    'an application behind the proxy gives a browser the session of another user by a cookie without a name',
    'httpwg/http-extensions#2229, httpwg/http-extensions#2251',
    'a cookie that a browser sends as one of the gateway does not reach it (RFC 6265bis section 5.7)',
    ['test/features/sign-in/own-cookies.test.ts > an origin cannot set %j'],
  ),
  later(
    'a client has a header checked, and removes it from the request that the origin gets',
    'plabayo/rama#748, linkerd/linkerd#676, vllm-project/agentic-api#217',
    'what Connection names is not part of the checked request (RFC 9110 section 7.6.1)',
    async ({ raw, token, reached }) => {
      const headed = ['GET /headed HTTP/1.1', HOST, 'X-Mode: dry-run']
      const typed = [
        'POST /typed HTTP/1.1',
        HOST,
        `Authorization: Bearer ${await token()}`,
        'Content-Type: application/json',
        'Content-Length: 12',
      ]
      for (const names of ['x-mode', 'close, X-Mode', ' ,X-MODE ,']) {
        const { status } = await raw([...headed, `Connection: ${names}`])
        expect(status, names).toBe(422)
      }
      for (const names of ['content-type', 'close,Content-Type', 'x , CONTENT-TYPE ,']) {
        const { status } = await raw([...typed, `Connection: ${names}`], '{"text":"x"}')
        expect(status, names).toBe(415)
      }
      expect(reached).toEqual([])
      expect((await raw([...headed, 'Connection: close, x-other'])).status).toBe(200)
      expect((await raw([...typed, 'Connection: content-typed'], '{"text":"x"}')).status).toBe(200)
      expect(reached.map(({ headers }) => headers['x-mode'] ?? headers['content-type'])).toEqual([
        'dry-run',
        'application/json',
      ])
    },
  ),
  later(
    'a filter of an object in the query is refused, because its document omits explode',
    'OAI/OpenAPI-Specification#4816, OAI/OpenAPI-Specification#1322, microcks/microcks#154',
    'deepObject has one meaning, with and without explode',
    ['test/cli/openapi/routes.test.ts > deepObject is one parameter for each member, also with %j'],
    NODE_ONLY,
  ),
  later(
    'an API behind a forward authorization reads the address or the scheme that a client has invented',
    'golang/vulndb#5149, golang/vulndb#4113, golang/vulndb#6211, dfds/infrastructure-modules#2475',
    'other spellings of what the proxy writes are refused, with underscores and dots',
    [
      'test/features/forward-auth/decisions.test.ts > which an API may read as a header of the gateway or of the proxy, is refused',
      'test/features/forward-auth/proxies.slow.test.ts > %s of a client never reaches the origin',
    ],
    NODE_ONLY,
  ),
]
