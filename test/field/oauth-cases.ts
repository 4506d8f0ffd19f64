/** Cases about sign-in, OAuth clients and MCP. Their suites have a provider and a browser. */
import type { FieldCase } from './case.ts'
import { EVERY_RUNTIME, NODE_ONLY } from './runtimes.ts'

export const oauthCases: readonly FieldCase[] = [
  {
    symptom: 'a user who has lost the required group keeps the session for as long as it is used',
    sources: ['own'],
    expected: 'the session ends at the next refresh, as a login would fail',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/token-endpoint.slow.test.ts > the user no longer has a required claim',
        'test/features/sign-in/token-endpoint.slow.test.ts > a required claim is absent',
      ],
    },
  },
  {
    symptom: 'a session continues although its provider demands a new login at each refresh',
    sources: ['own'],
    expected: 'the session ends for interaction_required and login_required, not for an outage',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/token-endpoint.slow.test.ts > decides about a session at its refresh',
        'test/features/sign-in/token-endpoint.slow.test.ts > the user must interact',
      ],
    },
  },
  {
    symptom: 'logins fail at a provider that sends no access token, or an odd life or type of it',
    sources: ['own'],
    expected: 'members of the token response that no login needs cannot fail one',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/token-endpoint.slow.test.ts > may send %s, which no login needs',
      ],
    },
  },
  {
    symptom: 'a limit or a page of the token endpoint looks like a forged login',
    sources: ['own'],
    expected: '503, because the provider has not decided about the login',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/token-endpoint.slow.test.ts > ends a login with the right cause for %s',
      ],
    },
  },
  {
    symptom: 'one user with very many claims, or an error with status 200, stops all introspection',
    sources: ['own'],
    expected: '503 or 401 for that token, and others are introspected',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/introspection/responses.slow.test.ts > introspection 200 with too many claims',
        'test/features/introspection/responses.slow.test.ts > introspection 200 with an error',
      ],
    },
  },
  {
    symptom: 'tools that a caller may not use are listed if the server writes "method": null',
    sources: ['own'],
    expected: 'null means absent, so the message is a response, whose lists are filtered',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/mcp/lists.test.ts > a list whose message has other members as null is filtered',
        'test/features/mcp/lists.test.ts > a list in a message that is a request too does not reach the client',
      ],
    },
  },
  {
    symptom: 'tool calls of a client that writes "arguments": null are malformed',
    sources: ['own'],
    expected: 'null means absent; a schema that needs an argument still refuses the call',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: ['test/features/mcp/calls.test.ts > arguments and metadata that are null are absent'],
    },
  },
  {
    symptom: 'an operation becomes public because security is an empty object',
    sources: ['own'],
    expected: 'security is a list; anything else needs a token, and a note names it',
    runtimes: NODE_ONLY,
    proof: { tests: ['test/cli/openapi/routes.test.ts > an empty object in place of the list'] },
  },
  {
    symptom: 'two tabs that refresh at the same time sign the user out',
    sources: ['HQBase/hqbase#41', 'PrefectHQ/fastmcp#5037', 'opendefender/OpenRisk#700'],
    expected: 'simultaneous refreshes get the same successor; later reuse ends the session',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/access/tokens/refresh-rotation.test.ts > 50 with one token, at two gateways, all get the same successor, in every round',
        'test/access/tokens/refresh-rotation.test.ts > after the grace period is reuse',
      ],
    },
  },
  {
    symptom:
      'a session with long tokens has cookies that browsers drop, and the login repeats for ever',
    sources: [
      'OpenIDC/mod_auth_openidc#92',
      'envoyproxy/gateway#7315',
      'oauth2-proxy/oauth2-proxy#1071',
    ],
    expected: 'the cookie is a short reference, and the session is stored in Redis',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/login.slow.test.ts > only the SHA-256 of the session is stored',
      ],
    },
  },
  {
    symptom: 'cookies of the session reach the origin and exceed its bound for headers',
    sources: ['oauth2-proxy/oauth2-proxy#644'],
    expected: 'cookies of the gateway are never forwarded',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/login.slow.test.ts > the session cookie is never sent to the origin, other cookies of the route are',
      ],
    },
  },
  {
    symptom: 'several tabs that sign in at the same time break each other',
    sources: [
      'oauth2-proxy/oauth2-proxy#611',
      'oauth2-proxy/oauth2-proxy#817',
      'oauth2-proxy/oauth2-proxy#3258',
    ],
    expected: 'each tab reaches its page',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/browser.slow.test.ts > two tabs that sign in at the same time both reach their pages',
      ],
    },
  },
  {
    symptom: 'a client id or a secret with special characters fails in Basic credentials',
    sources: [
      'jumbojett/OpenID-Connect-PHP#230',
      'IdentityServer/IdentityServer4#2086',
      'panva/node-oidc-provider#361',
    ],
    expected: 'both parts are form-encoded (RFC 6749 section 2.3.1)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-server/client-authentication.test.ts > Basic with form-encoded parts is accepted, in any letter case of the scheme',
        'test/features/introspection/responses.slow.test.ts > authenticates with client_secret_basic, encoded as RFC 6749 says',
      ],
    },
  },
  {
    symptom: 'scripts in a redirect URI pass a filter of schemes by another spelling',
    sources: ['cloudflare/workers-oauth-provider#97'],
    expected:
      'redirect URIs are compared with registered ones, and have only schemes that the policy permits',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/client-documents.slow.test.ts > a policy permits schemes by name',
        'test/features/authorization-code/code-endpoints.slow.test.ts > they register public clients, whose redirect URIs are checked',
      ],
    },
  },
  {
    symptom: 'a client on this machine cannot log in, because its port changes',
    sources: ['cloudflare/workers-oauth-provider#154'],
    expected: 'the port of a loopback redirect URI is free (RFC 8252 section 7.3)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/code-hostile.slow.test.ts > the port of a loopback redirect is free; its host and path are not',
      ],
    },
  },
  {
    symptom: 'calls to a provider fail on Workers, because their fetch refuses redirect: error',
    sources: ['better-auth/better-auth#11328', 'oomol-lab/open-connector#123'],
    expected: 'redirects are not followed, on each runtime',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/access/tokens/workerd.slow.test.ts > treats redirects, error pages and silence as outages',
        'test/features/sign-in/login.slow.test.ts > a deep link leads to the provider and back to the page',
      ],
    },
  },
  {
    symptom: 'an MCP client finds no metadata at the path of its server',
    sources: ['anthropics/claude-ai-mcp#716'],
    expected: 'the metadata is at the well-known path of the server (RFC 9728 section 3.1)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/mcp/metadata.test.ts > it names the URL of the server itself, its issuers and its scopes',
      ],
    },
  },
  {
    symptom: 'ids, names and empty data of events in an MCP stream are lost',
    sources: ['agentgateway/agentgateway#2167', 'stacklok/toolhive#5655'],
    expected: 'events arrive as the server sent them',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/mcp/streams.slow.test.ts > an event that primes the client keeps its id and its empty data',
        'test/features/mcp/streams.slow.test.ts > parts of an event may arrive in any number of bytes',
      ],
    },
  },
  {
    symptom: 'a user without roles is sent from /oauth/authorize to a page that cannot help',
    sources: ['own'],
    expected:
      '403 with a page that says what to do, and no code; the app gets access_denied (RFC 6749 section 4.1.2.1)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/code-login.slow.test.ts > a user without roles gets a page that names the missing permissions, and no code',
      ],
    },
  },
  {
    symptom: 'clients are sent for a token to a provider whose tokens the gateway never accepts',
    sources: ['own'],
    expected: 'authorization_servers has only issuers of accepted tokens (RFC 9728 section 2)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-server/protected-resource.test.ts > is no authorization server, with %s',
      ],
    },
  },
  {
    symptom: 'a demand for a stronger login that has two readings, or no value, is ignored',
    sources: ['own'],
    expected: 'invalid_request for the client, and no login (OpenID Connect Core section 5.5.1.1)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/code-login-age.slow.test.ts > other claims are ignored, and text that is no claims request is refused',
      ],
    },
  },
  {
    symptom: 'logins fail while gateways of two versions share one Redis',
    sources: ['own'],
    expected: 'the record of a login has only members that the earlier version reads',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/sign-in/stored-login.test.ts > a demand whose failure returns adds no member to it',
      ],
    },
  },
  {
    symptom: 'an app gets tokens for a code after its user has logged out at the provider',
    sources: ['own'],
    expected: 'invalid_grant: whatever ends the browser session ends its codes, wherever it is yet',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/late-cutoffs.test.ts > the code of a browser session is refused after',
      ],
    },
  },
  {
    symptom: 'an assertion of a client that names the issuer and the token endpoint is refused',
    sources: ['better-auth/better-auth#10811', 'wso2/product-is#16574', 'oauth-wg/oauth-v2-1#183'],
    expected:
      'each name in aud must be one of this server: its issuer, or an endpoint (RFC 7523 section 3, RFC 9126 section 2)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-server/client-authentication.test.ts > an assertion may name the server by its issuer and an endpoint, or by the called endpoint',
        "test/features/authorization-server/client-authentication.test.ts > ['two audiences', { aud: [PUBLIC_URL, 'https://other.test'] }]",
      ],
    },
  },
  {
    symptom:
      'a public client that sends its id with an empty secret in Basic credentials cannot log in',
    sources: [
      'ory/fosite#655',
      'DuendeArchive/IdentityServer4#2267',
      'spring-attic/spring-authorization-server#2028',
    ],
    expected:
      'an empty secret is none (RFC 6749 section 2.3.1), so only public clients may send it',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/code-endpoints.slow.test.ts > a public client may send its id without a secret in Basic credentials',
      ],
    },
  },
  {
    symptom:
      'an app waits for ever, because a repeated parameter leads to a page and not back to it',
    sources: [
      'keycloak/keycloak#6467',
      'thephpleague/oauth2-server#1039',
      'oauthjs/node-oauth2-server#755',
    ],
    expected:
      'invalid_request at the redirect URI, unless the client or the URI is in doubt (RFC 6749 section 4.1.2.1)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/errors.slow.test.ts > reports a repeated or malformed parameter at the redirect URI',
        'test/features/authorization-code/errors.slow.test.ts > shows a repeated %s on a page',
      ],
    },
  },
  {
    symptom: 'a client with one redirect URI must name it',
    sources: [
      'thephpleague/oauth2-server#190',
      'Haufe-Lexware/wicked.haufe.io#143',
      'tekul/broch#1',
    ],
    expected: 'it may leave it out, with several it must not (RFC 6749 section 3.1.2.3)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/code-hostile.slow.test.ts > a client with one redirect URI need not name it, for the code either',
        'test/features/authorization-code/code-hostile.slow.test.ts > redirect_uri %j of a client with two gets a page',
      ],
    },
  },
  {
    symptom: 'an MCP client in a browser cannot read the metadata of a path',
    sources: [
      'routecraftjs/routecraft#320',
      'routecraftjs/routecraft#332',
      'juspay/juspay-mcp#127',
    ],
    expected: 'pages of every origin may read what is public: metadata and keys',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-code/code-endpoints.slow.test.ts > pages of every origin may read /.well-known/%s, without credentials',
      ],
    },
  },
  {
    symptom:
      'a DPoP proof whose type is written as a media type, or whose optional claims are null, is refused',
    sources: ['own'],
    expected: 'application/dpop+jwt is dpop+jwt (RFC 7515 section 4.1.9), and null means absent',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/access/tokens/dpop.test.ts > check 4: has the type dpop+jwt',
        'test/access/tokens/dpop.test.ts > check 3: has all required claims with the right types',
      ],
    },
  },
  {
    symptom: 'a security event whose exp is null is refused as another kind of token',
    sources: ['own'],
    expected: 'null means absent; an event with a life is still refused (SSF 1.0 section 4.1.7)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/signals/push.test.ts > with claims that are null, and so absent, has its effect',
      ],
    },
  },
]
