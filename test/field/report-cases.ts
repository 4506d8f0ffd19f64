/** Cases of public reports that suites of their own prove: registrations, logins, keys, and what callers share. */
import type { FieldCase } from './case.ts'
import { EVERY_RUNTIME, NODE_ONLY, type RuntimeName } from './runtimes.ts'

const proven = (
  symptom: string,
  sources: string,
  expected: string,
  tests: readonly string[],
  runtimes: readonly RuntimeName[] = EVERY_RUNTIME,
): FieldCase => ({ symptom, sources: sources.split(', '), expected, runtimes, proof: { tests } })

export const reportCases: readonly FieldCase[] = [
  proven(
    'a registration is refused, and its client does not learn which member is wrong',
    'different-ai/openwork#3599, turnstonelabs/turnstone#1082, onyx-dot-app/onyx#12874',
    'error_description names the member, and repeats nothing of the client (RFC 7591 section 3.2.2)',
    [
      'test/features/authorization-code/client-documents.slow.test.ts > an error names the member %s, and repeats nothing of %j',
    ],
  ),
  proven(
    'a client on this machine cannot log in with an IPv6 address',
    'decocms/studio#6351, zitadel/zitadel#1658, cloudflare/workers-oauth-provider#35',
    '[::1] is as good as 127.0.0.1, with any port (RFC 8252 section 7.3)',
    ['test/features/authorization-code/code-endpoints.slow.test.ts > http://[::1]:51004/callback'],
  ),
  proven(
    'the verifier of a code is not compared with its challenge',
    'ory/hydra#1512, keycloak/keycloak#26808, zitadel/oidc#741, kanidm/kanidm#1097',
    'every code has a challenge of S256, and no token without its verifier (RFC 9700 section 4.8)',
    [
      'test/features/authorization-code/code-hostile.slow.test.ts > a replay without the verifier ends the session as well',
    ],
  ),
  proven(
    'the refreshed ID token of another login is taken over',
    'own',
    'a nonce that differs from that of the login ends the session (OpenID Connect Core section 12.2)',
    [
      'test/features/sign-in/token-endpoint.slow.test.ts > the new ID token has another nonce than the login',
    ],
  ),
  proven(
    'parallel requests at the end of an access token sign the user out, or look signed out',
    'nightscout/nocturne#391, F3-Nation/f3-nation#375, ScaleOvenStove/crosswithfriends#566',
    'one of them refreshes the tokens, and none waits or fails',
    [
      'test/features/sign-in/provider-sessions.slow.test.ts > parallel requests at two gateways cause one refresh, and none waits for it',
    ],
  ),
  proven(
    'a token of another kind, or one without the event, ends sessions as a logout token',
    'outline/outline#13438, wildfly-security/wildfly-elytron#2411, DuendeSoftware/products#460',
    'refused, and the session goes on (OpenID Connect Back-Channel Logout section 2.6)',
    [
      'test/features/sign-in/provider-sessions.slow.test.ts > with an event that is no object',
      'test/features/sign-in/provider-sessions.slow.test.ts > with a nonce, as an ID token',
    ],
  ),
  proven(
    'one renewal of a login in a terminal loses the tokens of another one',
    'Menci/Floway#67, Menci/Floway#340',
    'a command renews alone, however long its provider takes',
    [
      'test/cli/login/store.test.ts > a command that takes longer than a lock may be quiet keeps it',
      'test/cli/login/store.test.ts > a command that has lost its lock does not remove that of another one',
    ],
    NODE_ONLY,
  ),
  proven(
    'an IPv4 address inside an IPv6 address is found by its notation, and not by its bits',
    'express-rate-limit/express-rate-limit#667, Yeraze/meshmonitor#2001, Flowfin/jellyfin-plugin-sso#194',
    'mapped addresses and those of a NAT64 are their IPv4 address; others are counted by their /64',
    [
      'test/http/ip-address.test.ts > only an IPv4-mapped address and that of a NAT64 have an IPv4 address inside',
    ],
  ),
  proven(
    'callers who ask at the same time get the response of one of them',
    'caddyserver/cache-handler#82, jonbaldie/varnish#38, HarperFast/harper#1565',
    'requests share a call only if they are equal in caller, address and every header',
    [
      'test/origin/coalescing.slow.test.ts > requests that differ in caller, address or any header',
      'test/origin/coalescing.slow.test.ts > call the origin again after the response: coalescing is not a cache',
    ],
  ),
  proven(
    'an operator of one tenant reads the roles of the whole policy in a refusal',
    'own',
    'the refusal names the wrong role alone',
    [
      'test/features/operators/tenants.test.ts > a refused role names the roles of the policy only to an operator without a tenant',
    ],
  ),
]
