/** Cases about Redis, the audit store and addresses: other suites prove them with faults. */
import type { FieldCase } from './case.ts'
import { EVERY_RUNTIME, NODE_ONLY } from './runtimes.ts'

export const serviceCases: readonly FieldCase[] = [
  {
    symptom: 'a limiter admits everything while Redis is down or slow',
    sources: ['liwala/ay-framework#93', 'Emp1500/Code2Flow#11', 'edictum-ai/edictum-console#7'],
    expected: '503, except for anonymous routes whose limits say that they admit',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: ['test/redis/rest.test.ts > a connection that breaks is tried at most twice'],
    },
  },
  {
    symptom: 'writes fail for ever after a failover behind one address',
    sources: ['redis/ioredis#144', 'rajnandan1/kener#711', 'redis-rb/redis-client#69'],
    expected: 'the gateway recovers without a restart, and admits nothing meanwhile',
    runtimes: NODE_ONLY,
    proof: {
      tests: [
        'test/redis/resp-servers.slow.test.ts > after a failover, calls reach the new master, and a revocation that it has is in force',
      ],
    },
  },
  {
    symptom: 'an error reply of Redis is read as "no entry"',
    sources: ['redisson/redisson#3897', 'own'],
    expected: 'every error and every odd reply is an outage',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/isolate/redis-breaker.slow.test.ts > refuses each caller that must be refused, and admits the rest after the fault',
        'test/blackbox/redis-faults.test.ts > is an outage of the whole reply',
      ],
    },
  },
  {
    symptom: 'events are lost while another process locks the audit database',
    sources: ['own'],
    expected: 'events wait, and each is stored once',
    runtimes: NODE_ONLY,
    proof: {
      tests: [
        'test/audit/process.slow.test.ts > while the database is locked, requests go on; a consumer that is killed loses nothing',
      ],
    },
  },
  {
    symptom: 'a client chooses its address: it writes to the left of what its proxy appends',
    sources: ['own'],
    expected:
      'the rightmost address of an untrusted hop, or unknown if that is no address (RFC 7239 sections 4 and 8.1)',
    runtimes: NODE_ONLY,
    proof: {
      tests: [
        'test/runtimes/node/reported-address.slow.test.ts > has the address that the last untrusted hop was seen with, in each form',
        'test/runtimes/node/reported-address.slow.test.ts > does not depend on the text %j of a client',
      ],
    },
  },
  {
    symptom: 'an IPv4 address and its mapped IPv6 address have two budgets',
    sources: ['aspnet/BasicMiddleware#302'],
    expected: 'one caller, one budget',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/middleware/limit-by-address.test.ts > an IPv4-mapped IPv6 address has the budget of the IPv4 address',
      ],
    },
  },
  {
    symptom: 'a limit by address is evaded with another first address in X-Forwarded-For',
    sources: [
      'SandeepVashishtha/Eventra#13384',
      'brendanlong/lion-reader#983',
      'colophon-group/jobseek#3219',
    ],
    expected: 'addresses are read from the right, up to the first that no trusted proxy wrote',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/middleware/limit-by-address.test.ts > a new X-Forwarded-For in each request spends the same budget',
      ],
    },
  },
  {
    symptom: 'a client that leaves during an upload or a download ends the process',
    sources: ['h3js/srvx#142', 'honojs/node-server#185', 'middleapi/standard-server#76'],
    expected: 'only the request of that client ends',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/origin/faults.slow.test.ts > a client that leaves cancels its request to the origin',
      ],
    },
  },
  {
    symptom: 'a broken response of the origin looks complete',
    sources: ['own'],
    expected: '502, or a body that the client sees as broken (RFC 9112 section 8)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/runtimes/node/broken-response.test.ts > in a body of chunks, does not send the last chunk',
      ],
    },
  },
  {
    symptom:
      'WebSockets lose their subprotocol, their frames or their close code behind the gateway',
    sources: [
      'traefik/traefik#1945',
      'eclipse-vertx/vertx-http-proxy#125',
      'cloudflare/miniflare#106',
    ],
    expected: 'frames, the negotiated subprotocol and close codes pass (RFC 6455)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/routes/web-socket.slow.test.ts > is answered with only the protocol from the headers of the origin',
      ],
    },
  },
  {
    symptom:
      'a provider that answers a download of keys with a redirect, or HTML, ends all sign-ins',
    sources: ['auth0/jwks-rsa-java#77', 'IdentityModel/oidc-client-js#609'],
    expected: 'such an answer is an outage, and known keys serve',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/access/tokens/key-set-faults.slow.test.ts > redirects are never followed',
        'test/access/tokens/workerd.slow.test.ts > treats redirects, error pages and silence as outages',
      ],
    },
  },
  {
    symptom: 'an audit database that an earlier version created stays readable for all users',
    sources: ['own'],
    expected: 'the mode 0600 from the next start on, also for the journals, with a warning',
    runtimes: NODE_ONLY,
    proof: {
      tests: [
        'test/runtimes/node/private-files.test.ts > an audit database that others can read gets the mode 0600 when it is opened, with its journal and a warning',
      ],
    },
  },
  {
    symptom: 'a write is executed, and answered with 401 because its token ended meanwhile',
    sources: ['own'],
    expected:
      'a request with effects gets the answer of the origin, for five seconds after its headers',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/streams/ends.slow.test.ts > a request with effects gets its answer, although %s before the answer',
        'test/streams/ends.slow.test.ts > a request with effects gets its answer, although Redis fails for longer than the grace',
      ],
    },
  },
  {
    symptom: 'one failing check of callers ends the streams of all callers',
    sources: ['own'],
    expected: 'only the streams of callers in that check end',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/streams/slices.test.ts > a call that fails ends only the streams of its own callers',
      ],
    },
  },
  {
    symptom: 'a file that an editor of Windows has written loses its first variable, or is no JSON',
    sources: ['sensu/sensu#1232', 'glslang/windbg-mcp#117'],
    expected: 'a byte order mark is ignored (RFC 8259 section 8.1), as are its ends of lines',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/cli/connection.test.ts > uses the saved client of npm start and the default URL in a checkout and its folders',
        'test/validators/config.test.ts > names of issuers and audiences lose white space and a byte order mark around them',
      ],
    },
  },
  {
    symptom:
      'white space behind an issuer or an audience in the configuration makes all tokens invalid',
    sources: ['devops-thiago/ThrillhouseBot#197', 'dsx-ai-factory/infra-controller#4718'],
    expected: 'names are compared without the white space around them',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/validators/config.test.ts > names of issuers and audiences lose white space and a byte order mark around them',
      ],
    },
  },
  {
    symptom:
      'an ID token whose list of audiences names the client twice is one for several clients',
    sources: ['own'],
    expected:
      'accepted without azp: there is no other audience (OpenID Connect Core section 3.1.3.7)',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: ['test/features/sign-in/providers.test.ts > for this client is accepted: %j'],
    },
  },
  {
    symptom: 'a request whose scope has two spaces, or one at an end, is refused',
    sources: ['the-control-group/authx#69', 'cryptpad/sso#19'],
    expected: 'empty names are ignored, and are not sent to a provider',
    runtimes: EVERY_RUNTIME,
    proof: {
      tests: [
        'test/features/authorization-server/scope.test.ts > names with more spaces than needed',
        'test/features/sign-in/providers.test.ts > and a requested scope has one space between its names',
      ],
    },
  },
]
