/** Cases that suites of their own prove: with several gateways, providers, proxies or documents. */
import type { FieldCase } from './case.ts'
import { EVERY_RUNTIME, NODE_ONLY, type RuntimeName } from './runtimes.ts'

const proven = (
  symptom: string,
  sources: string,
  expected: string,
  tests: readonly string[],
  runtimes: readonly RuntimeName[] = EVERY_RUNTIME,
): FieldCase => ({ symptom, sources: sources.split(', '), expected, runtimes, proof: { tests } })

export const trialCases: readonly FieldCase[] = [
  proven(
    'the process ends when an origin drops an upload',
    'honojs/node-server#239, jswest/bartleby#648, apify/apify-mcp-server#793',
    'one 502 or 504, and every other request continues',
    [
      'test/runtimes/node/dropped-upload.slow.test.ts > has one response if the origin %s, and other requests continue',
    ],
    NODE_ONLY,
  ),
  proven(
    'behind a proxy that ends TLS, the origin receives http as the scheme and redirects for ever',
    'kgateway-dev/kgateway#4690, stacklok/toolhive#5567, sozu-proxy/sozu#253, deis/deis#2381',
    'the scheme is that of the public URL or of the trusted proxy, and never that of a client',
    [
      'test/features/origins/edge.slow.test.ts > an origin learns scheme, host and port of a request for %s, whatever the client states',
    ],
  ),
  proven(
    'a token is widened beyond the consent with the URL of the gateway as its resource',
    'anthropics/claude-code#52871, vercel/ai#13988, sigbit/mcp-auth-proxy#123',
    'a later token never has an audience that the first did not have (RFC 8707 section 2.2)',
    [
      'test/features/authorization-code/never-wider.slow.test.ts > is not widened with the resource %s at the code',
      'test/features/authorization-code/never-wider.slow.test.ts > no sequence of grants returns more than the grant before it',
    ],
  ),
  proven(
    'a long ID token fails at sign-in, with a page about cookies',
    'Azure/azure-managed-grafana#62',
    'a token that is no header field has 64 KiB, and each page names its own cause',
    [
      'test/features/sign-in/token-size.slow.test.ts > a token with %i groups is accepted',
      'test/features/sign-in/token-size.slow.test.ts > an ID token above 64 KiB is refused by a page that names the cause',
    ],
  ),
  proven(
    'a logout token without exp is refused, and the session goes on',
    'ory/hydra#4035, keycloak/keycloak#25753, goauthentik/authentik#16490, nextcloud/user_oidc#1436',
    'bounded by iat and used once, for providers that send none; others must send exp',
    [
      'test/features/sign-in/absent-claims.slow.test.ts > a logout token with exp %j ends the session where the entry says so, once',
      'test/features/sign-in/absent-claims.slow.test.ts > every other provider must send exp',
    ],
  ),
  proven(
    'null in an ID token or a token response ends the sign-in',
    'own',
    'null and empty mean absent',
    [
      'test/features/sign-in/absent-claims.slow.test.ts > ID tokens may have %j in place of a claim',
      'test/features/sign-in/absent-claims.slow.test.ts > token responses may have %j in place of a member',
    ],
  ),
  proven(
    'a login of yesterday counts as recent at a provider that sends no auth_time',
    'own',
    'an absent claim meets no demand, and is not replaced by iat',
    [
      'test/features/sign-in/login-age.slow.test.ts > auth_time that is %s opens no route with an age, and is no loop',
      'test/features/sign-in/login-age.slow.test.ts > a session that renews itself in silence does not become a recent login',
    ],
  ),
  proven(
    'YAML merge keys of a document are lost, and a protected operation becomes anonymous',
    'microsoft/OpenAPI.NET#410, orval-labs/orval#4103, stoplightio/elements#2142',
    'merge keys merge; nothing is dropped in silence',
    ['test/cli/openapi/coverage.slow.test.ts > merge keys of YAML'],
    NODE_ONLY,
  ),
  proven(
    'operations, methods in capitals and paths of a document disappear without a note',
    'getkin/kin-openapi#129',
    'each node is imported, or named in a note',
    ['test/cli/openapi/coverage.slow.test.ts > a note of the kind unmapped names'],
    NODE_ONLY,
  ),
  proven(
    'a path with a query or a star becomes another route',
    'OAI/OpenAPI-Specification#2000',
    'a route for exactly these requests',
    [
      'test/cli/openapi/coverage.slow.test.ts > a path with a star is one path, not all paths below',
      'test/cli/openapi/coverage.slow.test.ts > a path with a query is a route whose requests must have this query',
    ],
    NODE_ONLY,
  ),
  proven(
    'a server that negotiates an old version of MCP works directly, and not through the gateway',
    'drshade/haskell-mcp-server#2, newo-ether/Agora#78',
    'versions that the server negotiates pass, or the refusal names the setting',
    ['test/features/mcp/streams.slow.test.ts > passes if the route lists it, in %s'],
  ),
  proven(
    'an event that is no JSON-RPC message ends an MCP connection without a status',
    'stacklok/toolhive#5292, PhilflowIO/dav-mcp#31',
    '502 before the first byte, a JSON-RPC error after it',
    [
      'test/features/mcp/streams.slow.test.ts > after the first event, one that is %s ends the stream with an error for the request',
    ],
  ),
  proven(
    'requests fail when they come in the millisecond in which the origin closes an idle connection',
    'nodejs/node#47130, sanity-io/get-it#460',
    'methods without effects are sent once more on a new connection (RFC 9110 section 9.2.2)',
    [
      'test/runtimes/node/origin-connections.slow.test.ts > gets %s without a body once more, on a new connection',
      'test/runtimes/node/origin-connections.slow.test.ts > gets a request on a new connection never twice',
    ],
    NODE_ONLY,
  ),
  proven(
    'a gateway whose users sign in at a provider of plain OAuth 2.0 waits for its keys for ever',
    'own',
    'ready without keys, and a JWT of such an issuer is 401 without a call to it',
    [
      'test/features/sign-in/github.test.ts > the gateway is ready, with no breaker of keys, and never looks for them',
      'test/features/sign-in/github.test.ts > a JWT that claims to be of GitHub is refused with 401, without a call to GitHub',
      'test/dev/key-sets.test.ts > is waited for, and none of an issuer that needs no keys',
      'test/cli/doctor-plain-oauth.test.ts > a good client has no mistake, and the finding names its callback',
    ],
  ),
  proven(
    'a gateway is ready before it has the keys of its issuer, which is away or has published none yet',
    'own',
    'not ready and 503 until the first usable key set; later outages change nothing for a day',
    [
      'test/gateway/unready-issuers.test.ts > a gateway is unready until the issuers with a key set have sent keys, and asks no other',
    ],
  ),
  proven(
    'the health check passes while Redis refuses writes',
    'passmower/passmower#77',
    'not ready: requests need writes',
    ['test/routes/readiness-writes.test.ts > the check writes one key, which expires'],
  ),
  proven(
    'a client behind a proxy has no address, and no ban, after 33 parts of X-Forwarded-For',
    'own',
    'read from the right, up to the first hop that is not trusted',
    ['test/runtimes/node/forwarded-hops.test.ts > nothing on the left of an element changes it'],
    NODE_ONLY,
  ),
  proven(
    'a protected MCP resource is read by another spelling of its URI',
    'own',
    'a URI that is not in its normal form is refused, in every call that names one',
    [
      'test/features/mcp/resource-spellings.test.ts > is not read: %j',
      'test/features/mcp/resource-spellings.test.ts > does not reach the server by %s',
      'test/features/mcp/resource-spellings.test.ts > does not appear in lists, and templates of it do not',
    ],
  ),
  proven(
    'an open stream outlives the token, a revocation and a ban of its caller',
    'own',
    'it ends at the expiry, and soon after the others; what is cut never looks complete',
    [
      'test/streams/ends.slow.test.ts > every stream of a token ends when it expires, and what is cut does not look complete',
      'test/streams/ends.slow.test.ts > every stream ends soon after each kind of revocation and ban, and others stay open',
    ],
  ),
  proven(
    'one misconfigured client bans the address of an office for an hour',
    'CodeWithCJ/SparkyFitness#2446',
    'an authentic token never counts towards a ban of an address',
    [
      'test/access/admission/ban-causes.slow.test.ts > authentic credentials throttle their subject at their address, and no other caller',
    ],
  ),
  proven('a diagnosis takes the only slot of a customer', 'own', 'an explanation changes nothing', [
    'test/gateway/explanation/effects.slow.test.ts > judge an API key by its plan, and leave its only slot free',
  ]),
  proven(
    'a number is checked rounded and forwarded as it was sent',
    'own',
    'the value that is checked is the value that is forwarded',
    ['test/http/exact-numbers.test.ts > %s is 422 where a schema reads it, and reaches no handler'],
  ),
  proven(
    'the authorization endpoint sends a browser to any client that registered itself',
    'cloudflare/workers-oauth-provider#52',
    'errors are redirected only where a user has decided about the client (RFC 9700 section 4.11.2)',
    ['test/features/authorization-code/open-redirect.test.ts > a user who refuses goes back to it'],
  ),
  proven(
    'a machine client of an MCP server needs two audiences that no guide names',
    'own',
    'one documented setting works with the official clients',
    ['test/features/mcp/machine-clients.test.ts > the SDK 1.x'],
  ),
  proven(
    'a registration or a client document with null members is refused',
    'obot-platform/mcp-oauth-proxy#52',
    'a member that is null is absent',
    [
      'test/features/authorization-code/client-documents.slow.test.ts > members of a document that are null are absent',
    ],
  ),
  proven(
    'a name in X-Forwarded-For has a port or brackets, and the client has no address',
    'goauthentik/authentik#25679, envoyproxy/envoy#25517, koajs/koa#827, rack/rack#1227',
    'the address without its port',
    ['test/runtimes/node/serve.slow.test.ts > X-Forwarded-For: %s is the address %s'],
    NODE_ONLY,
  ),
  proven(
    'a schema that is nullable with an enumeration accepts too much or too little',
    'OAI/OpenAPI-Specification#1900, swagger-api/swagger-editor#2098, ajv-validator/ajv#993',
    'null is accepted where the enumeration has it',
    ['test/cli/openapi/schemas.slow.test.ts > nullable and an enumeration with null'],
    NODE_ONLY,
  ),
  proven(
    'a parameter beside text in one segment of a path is another route, or none',
    'OAI/OpenAPI-Specification#2000, getkin/kin-openapi#129',
    'imported where the gateway can match it, or named in a note',
    [
      'test/cli/openapi/routes.test.ts > paths and methods that have no route are listed, and other routes remain',
    ],
    NODE_ONLY,
  ),
  proven(
    'five tokens that a provider refuses with 400 or 403 end the sign-in of everybody',
    'keycloak/keycloak#16168, keycloak/keycloak#15361',
    'an answer about one token refuses this token, and opens no circuit breaker',
    ['test/features/introspection/responses.slow.test.ts > userinfo 403 without a challenge'],
  ),
  proven(
    'a resource with a query leads to a token for more than was requested',
    'getsentry/sentry-for-ai#334',
    'invalid_target (RFC 8707 section 2)',
    [
      'test/features/authorization-code/never-wider.slow.test.ts > gets no token for the resource %s, which is no path with a route',
    ],
  ),
  proven(
    'an empty secret of a client is read as no secret, or as the right one',
    'own',
    '401 invalid_client (RFC 6749 section 5.2)',
    ['test/features/authorization-server/client-authentication.test.ts > an empty secret'],
  ),
  proven(
    'a login callback that was used before shows an expired login to a signed-in user',
    'oauth2-proxy/oauth2-proxy#1888',
    'the browser goes on to its page; an error of the provider has a page that names it',
    [
      'test/features/sign-in/callback.slow.test.ts > a used callback of a signed-in browser goes on to its page',
      'test/features/sign-in/callback.slow.test.ts > the error %s of a provider is named, and the page that the user wanted is kept',
    ],
  ),
  proven(
    'a page gets CORS headers without Vary, or none on an error',
    'honojs/hono#4471, vert-x3/vertx-web#2880, hummingbird-project/hummingbird#460, expressjs/cors#290',
    'a response names the one page that may read it, and varies by Origin; refusals are readable',
    [
      'test/features/cors/wire.slow.test.ts > a response names the one page that may read it, and what the page may read',
      'test/features/cors/wire.slow.test.ts > a private network is not opened by rules that do not say so',
    ],
  ),
  proven(
    'clients that abort uploads and downloads leave connections and counts behind',
    'ether/etherpad-lite#3825, jswest/bartleby#648',
    'nothing is left over',
    ['test/runtimes/node/transport-fuzz.slow.test.ts > on %s,'],
  ),
  proven(
    'a registration without an authentication method, as editors send it, is refused',
    'obot-platform/mcp-oauth-proxy#52, jlowin/fastmcp#2460',
    'a public client (RFC 7591 section 2)',
    [
      'test/features/authorization-code/code-endpoints.slow.test.ts > they register public clients, whose redirect URIs are checked',
    ],
  ),
  proven(
    'a token response without scope ends the sign-in',
    'toeverything/AFFiNE#8752, panva/node-oidc-provider#174',
    'the requested scope was granted (RFC 6749 section 5.1)',
    [
      'test/features/sign-in/absent-claims.slow.test.ts > token responses may have %j in place of a member',
    ],
  ),
  proven(
    'a gateway below a path of its host builds wrong links',
    'oauth2-proxy/oauth2-proxy#1177, oauth2-proxy/oauth2-proxy#1400',
    'a public URL with a path is refused at the start, with a sentence',
    ['test/validators/config.test.ts > URLs have no credentials, and the public URL has no query'],
  ),
  proven(
    'padding between the parts of an attack hides it from the signatures',
    'own',
    'white space, comments and repeated separators of any length change no verdict',
    [
      'test/features/signatures/padding.test.ts > an attack is found, whatever is its length',
      'test/features/signatures/padding.test.ts > a padded attack never reaches the handler, encoded or not',
      'test/features/signatures/workerd.test.ts > workerd matches signatures as Node does',
    ],
  ),
  proven(
    'a master gains slots without their keys, and callers that were revoked are admitted',
    'own',
    'a lane without its marker is 503 until it has its revocations again',
    [
      'test/redis/cluster/lane-markers.slow.test.ts > and slots without their keys, which a believed master gains, admit no revoked caller',
    ],
    NODE_ONLY,
  ),
  proven(
    'two copies of the package in one process do not recognize the errors of each other',
    'own',
    'a refusal of a feature has its own status and reason, whatever copy threw it',
    [
      'test/cli/serve-checkout.slow.test.ts > a browser without a session is sent to the sign-in, and a stale one is named',
    ],
    NODE_ONLY,
  ),
  proven(
    'a document of a client is fetched under a profile that permits none',
    'own',
    'the profile fapi2 fetches no document, and its metadata announces none',
    [
      'test/features/authorization-code/fapi2.slow.test.ts > no document of a client is fetched',
      'test/features/authorization-code/fapi2.slow.test.ts > a client with keys for RS256 alone is a mistake',
    ],
  ),
  proven(
    'one derived row that cannot be read stops the audit trail',
    'own',
    'the events are stored, and the row stays as it is',
    [
      'test/audit/summary.slow.test.ts > a row of counts with %s stops no event, and stays as it is',
    ],
  ),
  proven(
    'a deep definition of a tool is written larger than the memory of the gateway',
    'own',
    'the text is bounded before it is written, and what is not shown whole cannot be approved',
    [
      'test/features/console/tool-approval.test.ts > a deep definition is refused without being written larger than it is',
    ],
  ),
  proven(
    'a framework takes another spelling of a path, a prefix or a rewritten URL for a guarded route, and its guard does not run',
    'own',
    'the guard runs where the framework has found the route, so no target reaches a handler without a token',
    ['test/guard/frameworks.slow.test.ts > without a token, %s reaches no handler'],
    NODE_ONLY,
  ),
  proven(
    'a header field that a framework uses inside lets a client past its middleware',
    'own',
    'no field opens a route',
    ['test/guard/frameworks.slow.test.ts > without a token, %s: %s opens no route'],
    NODE_ONLY,
  ),
  proven(
    'the response for one caller is prerendered or cached, and the next caller gets it',
    'own',
    'each request is decided anew, also where a setting of the framework asks for a static route',
    [
      'test/guard/frameworks.slow.test.ts > a response for an allowed caller is never one for the next caller',
    ],
    NODE_ONLY,
  ),
  proven(
    'a logout whose first call was lost is refused as used, and the session goes on',
    'Abblix/Oidc.Server#565',
    'a logout token is used when its sessions have ended (OpenID Connect Back-Channel Logout section 2.7)',
    [
      'test/features/sign-in/provider-sessions.slow.test.ts > ends the sessions when it is sent again, whatever reply of Redis was lost',
    ],
  ),
  proven(
    'a resource with the default port or capitals in its host is unknown',
    'modelcontextprotocol/python-sdk#3297',
    'the path that it spells, and no wider (RFC 3986 section 6.2)',
    [
      'test/features/authorization-code/never-wider.slow.test.ts > the resource %s is the path that it spells, and no wider',
    ],
  ),
  proven(
    'one IPv4 client behind a NAT64 uses up the limit of all',
    'Flowfin/jellyfin-plugin-sso#194',
    'a budget for each IPv4 address (RFC 6052 section 2.1)',
    [
      'test/middleware/limit-by-address.test.ts > behind a NAT64, each client has the budget of its IPv4 address',
    ],
  ),
  proven(
    'an app that passes its fragment to the sign-in loses its page',
    'oauth2-proxy/oauth2-proxy#1205, oauth2-proxy/oauth2-proxy#2068, hapijs/bell#365',
    'the browser returns to the fragment',
    [
      'test/features/sign-in/login.slow.test.ts > an app with routes in its fragment gets its page back',
    ],
  ),
  proven(
    'a proof of possession is accepted after the life that its client gave it',
    'quarkusio/quarkus#55917',
    'exp and nbf count where they are present (RFC 7519 section 4.1)',
    [
      'test/access/tokens/dpop.test.ts > is refused when a life that its client set has ended or not begun',
    ],
  ),
  {
    symptom: 'errors of the command line are messages of a schema, without a remedy',
    sources: ['own'],
    expected:
      'what a value must be, in the form of an option, and the command or the import that helps',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/cli/plain-findings.test.ts > a finding about %s says what the value must be',
        'test/cli/responses.slow.test.ts > and names the feature that a policy without %s lacks',
      ],
    },
  },
]
