/**
 * Tokens in the shape of each provider's documentation or source code
 * (`src/identity-providers/sources.ts`), the entry of `ISSUERS` that accepts them, and tokens of the same provider that it refuses.
 */
import type { PresetName } from '../../src/identity-providers/presets.ts'
import type { Algorithm } from '../../src/validators/jwk.ts'

type Claims = Readonly<Record<string, unknown>>

export interface Variant {
  /** Changes of the accepted token; `undefined` removes a claim. */
  readonly claims?: Claims
  readonly header?: Claims
  /** Replaces all claims but the times. */
  readonly instead?: Claims
  /** The check that refuses the token. */
  readonly check: string
}

export interface Documented {
  readonly entry: Claims & { readonly preset: PresetName }
  /** RS256 unless it says otherwise. */
  readonly header: Claims & { readonly alg?: Algorithm }
  /** Without `iat`, `exp` and `nbf`. */
  readonly claims: Claims
  /** The identity that the gateway reads, in part. */
  readonly identity: Claims
  /** Removes what gives the role `reader`. */
  readonly withoutRoles: Claims
  /** Other tokens that are accepted. */
  readonly accepted?: Readonly<Record<string, Omit<Variant, 'check'>>>
  readonly refused: {
    readonly 'an ID token': Variant
    readonly 'a token for another audience': Variant
    readonly 'a token of another client': Variant
  } & Readonly<Record<string, Variant>>
}

const GUID = (n: number) =>
  `${n}`.padStart(8, '0').replace(/^(.*)$/, '$1-aaaa-4bbb-8ccc-dddddddddddd')
const API = 'https://api.example.com'
const logoutToken = (claims: Claims, check = 'refused_claim'): Variant => ({
  instead: {
    ...claims,
    jti: 'logout',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  },
  check,
})

export const DOCUMENTED: Readonly<Record<PresetName, Documented>> = {
  auth0: {
    entry: {
      preset: 'auth0',
      issuer: 'https://tenant.auth0.com/',
      audience: API,
      rolesClaim: 'https://api.example.com/roles',
      clients: ['K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja'],
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://tenant.auth0.com/',
      sub: 'auth0|6553da60a54af58e29493993',
      aud: [API, 'https://tenant.auth0.com/userinfo'],
      azp: 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja',
      scope: 'openid profile read:orders',
      org_id: 'org_9ybsU1dN2dKfDkBi',
      permissions: ['read:orders'],
      'https://api.example.com/roles': ['reader'],
    },
    identity: {
      subject: 'auth0|6553da60a54af58e29493993',
      client: 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja',
      tenant: 'org_9ybsU1dN2dKfDkBi',
    },
    withoutRoles: { 'https://api.example.com/roles': [] },
    accepted: {
      'the RFC 9068 profile': {
        header: { typ: 'at+jwt' },
        claims: { azp: undefined, client_id: 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja', jti: 'a1' },
      },
    },
    refused: {
      'an ID token': {
        instead: {
          iss: 'https://tenant.auth0.com/',
          sub: 'auth0|6553da60a54af58e29493993',
          aud: API,
          sid: 's',
          nonce: 'n',
          name: 'Alice',
        },
        check: 'client_id',
      },
      'a token for another audience': {
        claims: { aud: ['https://other.example.com', 'https://tenant.auth0.com/userinfo'] },
        check: 'aud',
      },
      'a token of another client': { claims: { azp: 'other' }, check: 'client_id' },
      'a token of another tenant': { claims: { iss: 'https://other.auth0.com/' }, check: 'iss' },
      'a logout token': logoutToken({
        iss: 'https://tenant.auth0.com/',
        aud: API,
        azp: 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja',
        sub: 'x',
      }),
    },
  },

  authentik: {
    entry: {
      preset: 'authentik',
      issuer: 'https://authentik.example.com/application/o/orders/',
      audience: 'orders-client',
      rolesMap: { 'orders readers': 'reader' },
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://authentik.example.com/application/o/orders/',
      sub: '1b5b2c7f',
      aud: 'orders-client',
      auth_time: 1,
      acr: 'goauthentik.io/providers/oauth2/default',
      amr: ['pwd'],
      nonce: 'n',
      sid: 'session-1',
      groups: ['orders readers', 'authentik Admins'],
      azp: 'orders-client',
      uid: 'x1y2',
    },
    identity: { client: 'orders-client', session: 'session-1' },
    withoutRoles: { groups: ['authentik Admins'] },
    refused: {
      'an ID token': { claims: { azp: undefined, uid: undefined }, check: 'client_id' },
      'a token for another audience': { claims: { aud: 'other' }, check: 'aud' },
      'a token of another client': {
        claims: { aud: 'other-client', azp: 'other-client' },
        check: 'aud',
      },
      'an ID token of a provider that names the client': {
        claims: { uid: undefined },
        check: 'required_claim',
      },
    },
  },

  'better-auth': {
    entry: {
      preset: 'better-auth',
      issuer: 'https://app.example.com',
      audience: 'https://app.example.com',
      rolesMap: { user: 'reader' },
    },
    header: { alg: 'EdDSA', typ: undefined },
    claims: {
      iss: 'https://app.example.com',
      aud: 'https://app.example.com',
      sub: 'u1',
      id: 'u1',
      email: 'alice@example.com',
      emailVerified: true,
      name: 'Alice',
      role: 'user',
    },
    identity: { subject: 'u1' },
    withoutRoles: { role: 'guest' },
    refused: {
      'an ID token': {
        instead: {
          iss: 'https://app.example.com',
          aud: 'https://app.example.com',
          sub: 'u1',
          nonce: 'n',
          auth_time: 1,
        },
        check: 'refused_claim',
      },
      'a token for another audience': { claims: { aud: 'https://other.test' }, check: 'aud' },
      'a token of another client': { claims: { aud: 'client-of-the-app' }, check: 'aud' },
      'an ID token without nonce': { claims: { id: undefined }, check: 'required_claim' },
    },
  },

  clerk: {
    entry: {
      preset: 'clerk',
      issuer: 'https://clerk.example.com',
      audience: 'https://app.example.com',
    },
    header: { typ: 'JWT', cat: 'cl_B7d4PD111AAA' },
    claims: {
      iss: 'https://clerk.example.com',
      sub: 'user_2o',
      sid: 'sess_2o',
      azp: 'https://app.example.com',
      v: 2,
      jti: 'j1',
      fva: [7, -1],
      sts: 'active',
      o: { id: 'org_1', rol: 'reader', slg: 'acme', per: 'read', fpm: '1' },
    },
    identity: { subject: 'user_2o', session: 'sess_2o', tenant: 'org_1' },
    withoutRoles: { o: { id: 'org_1', rol: 'member' } },
    accepted: {
      'version 1': {
        claims: {
          v: undefined,
          o: undefined,
          sts: undefined,
          org_id: 'org_1',
          org_role: 'org:reader',
        },
      },
    },
    refused: {
      'an ID token': {
        instead: {
          iss: 'https://clerk.example.com',
          sub: 'user_2o',
          aud: 'oauth-client',
          nonce: 'n',
          azp: 'https://app.example.com',
        },
        check: 'aud',
      },
      'a token for another audience': { claims: { azp: 'https://evil.test' }, check: 'aud' },
      'a token of another client': { claims: { azp: undefined }, check: 'aud' },
      'a session with a pending task': { claims: { sts: 'pending' }, check: 'required_claim' },
      'a token of a template, without a session': {
        claims: { sid: undefined },
        check: 'required_claim',
      },
      'a token of another instance': {
        claims: { iss: 'https://other.clerk.accounts.dev' },
        check: 'iss',
      },
    },
  },

  'cloudflare-access': {
    entry: {
      preset: 'cloudflare-access',
      issuer: 'https://team.cloudflareaccess.com',
      audience: '32eafc7626e974616deaf0dc3ce63d7bcbed58a2731e84d06bc3cdf1b53c4228',
      rolesMap: { staff: 'reader' },
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://team.cloudflareaccess.com',
      aud: ['32eafc7626e974616deaf0dc3ce63d7bcbed58a2731e84d06bc3cdf1b53c4228'],
      email: 'user@example.com',
      type: 'app',
      identity_nonce: '6ei69kawdKzMIAPF',
      sub: '7335d417-61da-459d-899c-0a01c76a2f94',
      country: 'US',
      custom: { groups: ['staff'] },
    },
    identity: { subject: '7335d417-61da-459d-899c-0a01c76a2f94' },
    withoutRoles: { custom: {} },
    accepted: {
      'a service token': {
        claims: { sub: '', common_name: 'e367826f93b8d71185e03fe518aff3b4.access' },
      },
    },
    refused: {
      'an ID token': { claims: { type: undefined, nonce: 'n' }, check: 'refused_claim' },
      'a token for another audience': { claims: { aud: ['other'] }, check: 'aud' },
      'a token of another client': {
        claims: { aud: ['tag of another application'] },
        check: 'aud',
      },
      'the session of the team': { claims: { type: 'org' }, check: 'required_claim' },
      'a token of another team': {
        claims: { iss: 'https://other.cloudflareaccess.com' },
        check: 'iss',
      },
    },
  },

  cognito: {
    entry: {
      preset: 'cognito',
      issuer: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Example',
      audience: '57cbishk4j24pabc1234567890',
      rolesMap: { Readers: 'reader' },
    },
    header: { typ: undefined },
    claims: {
      iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Example',
      sub: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      device_key: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      'cognito:groups': ['Readers'],
      version: 2,
      client_id: '57cbishk4j24pabc1234567890',
      origin_jti: 'origin-1',
      event_id: 'event-1',
      token_use: 'access',
      scope: 'aws.cognito.signin.user.admin https://api.example.com/orders.read',
      auth_time: 1,
      jti: 'jti-1',
      username: 'alice',
    },
    identity: { client: '57cbishk4j24pabc1234567890', session: 'origin-1' },
    withoutRoles: { 'cognito:groups': undefined },
    refused: {
      'an ID token': {
        claims: {
          token_use: 'id',
          aud: '57cbishk4j24pabc1234567890',
          client_id: undefined,
          'cognito:username': 'alice',
        },
        check: 'aud',
      },
      'a token for another audience': { claims: { aud: 'https://other.test' }, check: 'aud' },
      'a token of another client': { claims: { client_id: 'other' }, check: 'aud' },
      'a token of another region': {
        claims: { iss: 'https://cognito-idp.us-east-1.amazonaws.com/eu-west-1_Example' },
        check: 'iss',
      },
      'a token of another user pool': {
        claims: { iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Other' },
        check: 'iss',
      },
      'an ID token that names the client': { claims: { token_use: 'id' }, check: 'required_claim' },
    },
  },

  'cognito-id': {
    entry: {
      preset: 'cognito-id',
      issuer: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Ident',
      audience: 'xxxxxxxxxxxxexample',
      rolesMap: { 'test-*': '*er' },
      tenantClaim: 'custom:tenant',
    },
    header: { typ: undefined },
    claims: {
      iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Ident',
      sub: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      'cognito:groups': ['test-read'],
      email_verified: true,
      'cognito:username': 'alice',
      'custom:tenant': 'acme',
      origin_jti: 'origin-1',
      aud: 'xxxxxxxxxxxxexample',
      event_id: 'event-1',
      token_use: 'id',
      auth_time: 1,
      jti: 'jti-1',
      at_hash: 'h',
    },
    identity: { client: 'xxxxxxxxxxxxexample', tenant: 'acme', session: 'origin-1' },
    withoutRoles: { 'cognito:groups': [] },
    refused: {
      // The entry names ID tokens, so the other token of the provider is the access token.
      'an ID token': {
        claims: { token_use: 'access', at_hash: undefined },
        check: 'required_claim',
      },
      'a token for another audience': { claims: { aud: 'other' }, check: 'aud' },
      'a token of another client': { claims: { aud: 'other client' }, check: 'aud' },
      'an access token': {
        claims: { token_use: 'access', aud: undefined, client_id: 'xxxxxxxxxxxxexample' },
        check: 'aud',
      },
      'a logout token': logoutToken({
        iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Ident',
        aud: 'xxxxxxxxxxxxexample',
        sub: 'x',
        token_use: 'id',
      }),
    },
  },

  descope: {
    entry: {
      preset: 'descope',
      issuer: 'https://api.descope.com/P2exampleProject',
      rolesMap: { 'Tenant Reader': 'reader' },
    },
    header: { alg: 'ES384', typ: 'JWT' },
    claims: {
      amr: ['oauth'],
      dct: 'acme',
      drn: 'DS',
      iss: 'https://api.descope.com/P2exampleProject',
      rexp: '2030-01-10T00:57:21Z',
      permissions: ['User Admin'],
      roles: ['Tenant Reader'],
      tenants: { acme: { roles: ['Tenant Reader'] }, other: { roles: ['Admin'] } },
      sub: 'U2exampleUser',
    },
    identity: { subject: 'U2exampleUser', tenant: 'acme' },
    withoutRoles: { roles: [] },
    accepted: {
      'a token with the audience of the project': {
        claims: { aud: ['https://api.descope.com/P2exampleProject'] },
      },
    },
    refused: {
      'an ID token': {
        claims: { drn: undefined, aud: 'oidc-client', nonce: 'n' },
        check: 'aud',
      },
      'a token for another audience': { claims: { aud: ['other'] }, check: 'aud' },
      'a token of another client': { claims: { iss: 'P2otherProject' }, check: 'iss' },
      'a refresh token': { claims: { drn: 'DSR' }, check: 'required_claim' },
    },
  },

  entra: {
    entry: {
      preset: 'entra',
      tenants: [GUID(1), 'contoso.example'],
      audience: [GUID(9), 'api://orders'],
      rolesMap: { 'Orders.Reader': 'reader', [GUID(7)]: 'reader' },
      clients: [GUID(5)],
    },
    header: { typ: 'JWT' },
    claims: {
      aud: GUID(9),
      iss: `https://login.microsoftonline.com/${GUID(1)}/v2.0`,
      aio: 'x',
      azp: GUID(5),
      azpacr: '0',
      name: 'Alice',
      oid: GUID(3),
      preferred_username: 'alice@example.com',
      rh: 'r',
      roles: ['Orders.Reader'],
      scp: 'Orders.Read user_impersonation',
      sub: 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
      tid: GUID(1),
      uti: 'u',
      ver: '2.0',
    },
    identity: {
      client: GUID(5),
      tenant: GUID(1),
      tokenId: 'u',
      scopes: ['Orders.Read', 'user_impersonation'],
    },
    withoutRoles: { roles: undefined },
    accepted: {
      'a token of a group': { claims: { roles: undefined, groups: [GUID(7), GUID(8)] } },
      'a token of an application': {
        claims: { scp: undefined, name: undefined, idtyp: 'app', azpacr: '1' },
      },
    },
    refused: {
      'an ID token': {
        claims: { azp: undefined, azpacr: undefined, scp: undefined, nonce: 'n' },
        check: 'client_id',
      },
      'a token for another audience': { claims: { aud: GUID(8) }, check: 'aud' },
      'a token of another client': { claims: { azp: GUID(6) }, check: 'client_id' },
      'a token of another tenant': {
        claims: { iss: `https://login.microsoftonline.com/${GUID(2)}/v2.0`, tid: GUID(2) },
        check: 'iss',
      },
      'a token with the issuer of all tenants': {
        claims: { iss: 'https://login.microsoftonline.com/{tenantid}/v2.0' },
        check: 'iss',
      },
      'a logout token': { header: { typ: 'logout+jwt' }, check: 'typ' },
    },
  },

  firebase: {
    entry: {
      preset: 'firebase',
      issuer: 'https://securetoken.google.com/my-project',
      audience: 'my-project',
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://securetoken.google.com/my-project',
      aud: 'my-project',
      auth_time: 1,
      user_id: 'uid1',
      sub: 'uid1',
      email: 'alice@example.com',
      email_verified: true,
      roles: ['reader'],
      firebase: { identities: {}, sign_in_provider: 'password', tenant: 'acme' },
    },
    identity: { subject: 'uid1', tenant: 'acme' },
    withoutRoles: { roles: undefined },
    accepted: { 'a role in a text': { claims: { roles: undefined, role: 'reader' } } },
    refused: {
      // The provider has no access tokens, and the entry names ID tokens.
      'an ID token': {
        claims: { iss: 'https://accounts.google.com', aud: 'client' },
        check: 'aud',
      },
      'a token for another audience': { claims: { aud: 'other-project' }, check: 'aud' },
      'a token of another client': {
        claims: { iss: 'https://securetoken.google.com/other-project', aud: 'other-project' },
        check: 'iss',
      },
      'a session cookie': {
        claims: { iss: 'https://session.firebase.google.com/my-project' },
        check: 'iss',
      },
      'a custom token': {
        claims: { auth_time: undefined, claims: {}, uid: 'uid1' },
        check: 'required_claim',
      },
    },
  },

  fusionauth: {
    entry: {
      preset: 'fusionauth',
      issuer: 'https://acme.fusionauth.io',
      audience: GUID(4),
    },
    header: { typ: 'JWT', gty: ['authorization_code'] },
    claims: {
      applicationId: GUID(4),
      aud: GUID(4),
      authenticationType: 'PASSWORD',
      auth_time: 1,
      email: 'alice@example.com',
      email_verified: true,
      jti: 'j1',
      iss: 'https://acme.fusionauth.io',
      preferred_username: 'alice',
      roles: ['reader'],
      scope: 'openid offline_access',
      sid: GUID(6),
      sub: GUID(2),
      tid: GUID(1),
    },
    identity: { client: GUID(4), tenant: GUID(1), session: GUID(6) },
    withoutRoles: { roles: [] },
    refused: {
      'an ID token': { claims: { at_hash: 'h', nonce: 'n' }, check: 'refused_claim' },
      'an ID token without nonce and at_hash': {
        claims: { applicationId: undefined, roles: undefined },
        check: 'required_claim',
      },
      'a token for another audience': { claims: { aud: GUID(5) }, check: 'aud' },
      'a token of another client': {
        claims: { aud: GUID(5), applicationId: GUID(5) },
        check: 'aud',
      },
    },
  },

  'github-actions': {
    entry: {
      preset: 'github-actions',
      audience: API,
      require: { repository_owner_id: '65' },
      rolesMap: { 'octo-org/*': 'reader' },
    },
    header: { typ: 'JWT', x5t: 'example-thumbprint' },
    claims: {
      jti: 'example-id',
      sub: 'repo:octo-org/octo-repo:environment:prod',
      environment: 'prod',
      aud: API,
      ref: 'refs/heads/main',
      sha: 'example-sha',
      repository: 'octo-org/octo-repo',
      repository_owner: 'octo-org',
      actor_id: '12',
      repository_visibility: 'private',
      repository_id: '74',
      repository_owner_id: '65',
      run_id: 'example-run-id',
      runner_environment: 'github-hosted',
      actor: 'octocat',
      workflow: 'example-workflow',
      event_name: 'workflow_dispatch',
      ref_type: 'branch',
      job_workflow_ref: 'octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main',
      iss: 'https://token.actions.githubusercontent.com',
    },
    identity: { client: 'octo-org/octo-repo', tenant: 'octo-org' },
    withoutRoles: { repository: 'other/octo-repo' },
    accepted: {
      'a subject with ids': {
        claims: { sub: 'repo:octo-org@65/octo-repo@74:ref:refs/heads/main' },
      },
    },
    refused: {
      'an ID token': { claims: { nonce: 'n' }, check: 'refused_claim' },
      'a token for another audience': {
        claims: { aud: 'https://github.com/octo-org' },
        check: 'aud',
      },
      'a token of another client': {
        claims: { repository_owner_id: '66', repository_owner: 'evil', repository: 'evil/repo' },
        check: 'required_claim',
      },
      'a token of another server': {
        claims: { iss: 'https://github.example.com/_services/token' },
        check: 'iss',
      },
    },
  },

  'gitlab-ci': {
    entry: {
      preset: 'gitlab-ci',
      audience: API,
      require: { namespace_id: '72' },
      rolesMap: { 'my-group/*': 'reader' },
    },
    header: { typ: 'JWT' },
    claims: {
      namespace_id: '72',
      namespace_path: 'my-group',
      project_id: '20',
      project_path: 'my-group/my-project',
      user_id: '1',
      user_login: 'sample-user',
      user_email: 'sample-user@example.com',
      pipeline_id: '574',
      pipeline_source: 'push',
      job_id: '302',
      ref: 'feature-branch-1',
      ref_type: 'branch',
      ref_protected: 'false',
      environment: 'test-environment2',
      runner_id: 1,
      runner_environment: 'self-hosted',
      sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
      jti: '235b3a54-b797-45c7-ae9a-f72d7bc6ef5b',
      iss: 'https://gitlab.com',
      sub: 'project_path:my-group/my-project:ref_type:branch:ref:feature-branch-1',
      aud: API,
    },
    identity: { client: 'my-group/my-project', tenant: 'my-group' },
    withoutRoles: { project_path: 'other/project', environment: undefined },
    refused: {
      'an ID token': {
        instead: {
          iss: 'https://gitlab.com',
          sub: '1',
          aud: API,
          auth_time: 1,
          namespace_id: '72',
          groups_direct: ['my-group'],
        },
        check: 'required_claim',
      },
      'a token for another audience': {
        claims: { aud: 'https://vault.example.com' },
        check: 'aud',
      },
      'a token of another client': {
        claims: { namespace_id: '73', namespace_path: 'evil', project_path: 'evil/x' },
        check: 'required_claim',
      },
      'a token of another instance': {
        claims: { iss: 'https://gitlab.example.com' },
        check: 'iss',
      },
    },
  },

  google: {
    entry: {
      preset: 'google',
      audience: '1234987819200.apps.googleusercontent.com',
      clients: ['1234987819200.apps.googleusercontent.com'],
      rolesMap: { 'example.com': 'reader' },
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://accounts.google.com',
      azp: '1234987819200.apps.googleusercontent.com',
      aud: '1234987819200.apps.googleusercontent.com',
      sub: '10769150350006150715113082367',
      at_hash: 'HK6E_P6Dh8Y93mRNtsDB1Q',
      hd: 'example.com',
      email: 'jsmith@example.com',
      email_verified: true,
      nonce: '0394852-3190485-2490358',
    },
    identity: { tenant: 'example.com', client: '1234987819200.apps.googleusercontent.com' },
    withoutRoles: { hd: undefined },
    refused: {
      // The provider has no access tokens in this form, and the entry names ID tokens.
      'an ID token': { claims: { iss: 'accounts.google.com' }, check: 'iss' },
      'a token for another audience': {
        claims: { aud: 'other.apps.googleusercontent.com' },
        check: 'aud',
      },
      'a token of another client': {
        claims: { azp: 'android.apps.googleusercontent.com' },
        check: 'client_id',
      },
      'an email address that is not verified': {
        claims: { email_verified: false },
        check: 'required_claim',
      },
      'a security event token': logoutToken({
        iss: 'https://accounts.google.com',
        aud: '1234987819200.apps.googleusercontent.com',
        azp: '1234987819200.apps.googleusercontent.com',
        sub: 'x',
      }),
    },
  },

  keycloak: {
    entry: {
      preset: 'keycloak',
      issuer: 'https://sso.example.com/realms/shop',
      audience: 'orders-api',
      clients: ['orders-web'],
    },
    header: { typ: 'JWT' },
    claims: {
      auth_time: 1,
      jti: 'onrtac:1',
      iss: 'https://sso.example.com/realms/shop',
      aud: ['orders-api', 'account'],
      sub: GUID(2),
      typ: 'Bearer',
      azp: 'orders-web',
      sid: 's1',
      acr: '1',
      'allowed-origins': ['https://shop.example.com'],
      realm_access: { roles: ['offline_access', 'reader', 'uma_authorization'] },
      resource_access: {
        'orders-api': { roles: ['picker'] },
        account: { roles: ['manage-account'] },
      },
      scope: 'openid email profile',
      email_verified: true,
      preferred_username: 'alice',
    },
    identity: {
      client: 'orders-web',
      session: 's1',
      roles: ['offline_access', 'reader', 'uma_authorization', 'picker'],
    },
    withoutRoles: { realm_access: { roles: ['offline_access'] } },
    accepted: {
      'a role of the client': {
        claims: {
          realm_access: undefined,
          resource_access: { 'orders-api': { roles: ['reader'] } },
        },
      },
      'a token of an older version': {
        claims: { nonce: 'n', sid: undefined, session_state: 's1' },
      },
      'the type of RFC 9068': { header: { typ: 'at+jwt' } },
    },
    refused: {
      'an ID token': {
        claims: { typ: 'ID', aud: 'orders-api', nonce: 'n', at_hash: 'h' },
        check: 'refused_claim',
      },
      'a token for another audience': { claims: { aud: 'account' }, check: 'aud' },
      'a token of another client': { claims: { azp: 'other' }, check: 'client_id' },
      'a token of another realm': {
        claims: { iss: 'https://sso.example.com/realms/other' },
        check: 'iss',
      },
      'a refresh token': { claims: { typ: 'Refresh' }, check: 'required_claim' },
      'an offline token': { claims: { typ: 'Offline' }, check: 'required_claim' },
      'a logout token': { claims: { typ: 'Logout' }, check: 'required_claim' },
      'a role of another client': {
        claims: { aud: 'account', resource_access: { account: { roles: ['reader'] } } },
        check: 'aud',
      },
    },
  },

  kubernetes: {
    entry: {
      preset: 'kubernetes',
      issuer: 'https://kubernetes.default.svc.cluster.local',
      audience: 'orders',
      rolesMap: { 'system:serviceaccount:shop:*': 'reader' },
      require: { '/kubernetes.io/namespace': 'shop' },
    },
    header: { alg: 'ES384', typ: undefined },
    claims: {
      aud: ['orders'],
      iss: 'https://kubernetes.default.svc.cluster.local',
      jti: GUID(3),
      'kubernetes.io': {
        namespace: 'shop',
        node: { name: '127.0.0.1', uid: GUID(8) },
        pod: { name: 'web-5f9', uid: GUID(6) },
        serviceaccount: { name: 'web', uid: GUID(5) },
      },
      sub: 'system:serviceaccount:shop:web',
    },
    identity: { subject: 'system:serviceaccount:shop:web', tenant: 'shop', client: GUID(5) },
    withoutRoles: { sub: 'system:serviceaccount:other:web' },
    accepted: { 'a token of an external signer': { header: { typ: 'JWT' } } },
    refused: {
      'an ID token': { claims: { nonce: 'n' }, check: 'refused_claim' },
      'a token for another audience': {
        claims: { aud: ['https://kubernetes.default.svc.cluster.local'] },
        check: 'aud',
      },
      'a token of another client': {
        claims: { 'kubernetes.io': { namespace: 'other' } },
        check: 'required_claim',
      },
      'a token of a user': { claims: { sub: 'alice' }, check: 'required_claim' },
      'a token of another cluster': {
        claims: { iss: 'https://oidc.eks.eu-west-1.amazonaws.com/id/1' },
        check: 'iss',
      },
    },
  },

  logto: {
    entry: {
      preset: 'logto',
      issuer: 'https://tenant.logto.app/oidc',
      audience: API,
      clients: ['web-app'],
    },
    header: { alg: 'ES384', typ: 'at+jwt' },
    claims: {
      jti: 'j1',
      sub: 'foo',
      scope: 'read:orders',
      client_id: 'web-app',
      iss: 'https://tenant.logto.app/oidc',
      aud: API,
      organization_id: 'org1',
      roles: ['reader'],
    },
    identity: { client: 'web-app', tenant: 'org1' },
    withoutRoles: { roles: undefined },
    refused: {
      'an ID token': {
        header: { typ: undefined },
        claims: { aud: 'web-app', client_id: undefined, at_hash: 'h' },
        check: 'typ',
      },
      'a token for another audience': { claims: { aud: 'https://other.test' }, check: 'aud' },
      'a token of another client': { claims: { client_id: 'other' }, check: 'client_id' },
      'a token of another tenant': {
        claims: { iss: 'https://other.logto.app/oidc' },
        check: 'iss',
      },
    },
  },

  okta: {
    entry: {
      preset: 'okta',
      issuer: 'https://example.okta.com/oauth2/default',
      audience: 'api://default',
      clients: ['0oabucvyc38HLL1ef0h7'],
      rolesMap: { 'App - *': '*' },
    },
    header: { typ: undefined },
    claims: {
      ver: 1,
      jti: 'AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE',
      iss: 'https://example.okta.com/oauth2/default',
      aud: 'api://default',
      sub: 'alice@example.com',
      cid: '0oabucvyc38HLL1ef0h7',
      uid: '00ujmkLgagxeRrAg20g3',
      scp: ['openid', 'email', 'read:orders'],
      groups: ['Everyone', 'App - reader'],
      auth_time: 1,
    },
    identity: {
      client: '0oabucvyc38HLL1ef0h7',
      scopes: ['openid', 'email', 'read:orders'],
      roles: ['reader'],
    },
    withoutRoles: { groups: ['Everyone'] },
    refused: {
      'an ID token': {
        instead: {
          ver: 1,
          jti: 'ID.radCQMOQUmyvcTBmmIL0J6BaS60apUEiC7-vI7pOmkw',
          iss: 'https://example.okta.com/oauth2/default',
          aud: 'api://default',
          sub: '00ujmkLgagxeRrAg20g3',
          amr: ['pwd'],
          at_hash: 'h',
        },
        check: 'client_id',
      },
      'a token for another audience': { claims: { aud: 'api://other' }, check: 'aud' },
      'a token of another client': { claims: { cid: 'other' }, check: 'client_id' },
      'a token of another authorization server': {
        claims: { iss: 'https://example.okta.com/oauth2/other' },
        check: 'iss',
      },
      'an ID token that names a client': { claims: { jti: 'ID.1' }, check: 'required_claim' },
    },
  },

  ory: {
    entry: {
      preset: 'ory',
      issuer: 'https://slug.projects.oryapis.com',
      audience: API,
      clients: ['web-app'],
    },
    header: { typ: 'JWT' },
    claims: {
      aud: [API],
      client_id: 'web-app',
      ext: { roles: ['reader'], tenant: 'acme' },
      iss: 'https://slug.projects.oryapis.com',
      jti: 'j1',
      scp: ['offline', 'read:orders'],
      sub: 'foo',
    },
    identity: { client: 'web-app', tenant: 'acme', scopes: ['offline', 'read:orders'] },
    withoutRoles: { ext: {} },
    accepted: {
      'claims that are not mirrored': { claims: { ext: undefined, roles: ['reader'] } },
    },
    refused: {
      'an ID token': {
        claims: { client_id: undefined, scp: undefined, at_hash: 'h', aud: [API] },
        check: 'client_id',
      },
      'a token for another audience': { claims: { aud: ['https://other.test'] }, check: 'aud' },
      'a token without an audience': { claims: { aud: [] }, check: 'aud' },
      'a token of another client': { claims: { client_id: 'other' }, check: 'client_id' },
    },
  },

  ping: {
    entry: {
      preset: 'ping',
      issuer: `https://auth.pingone.eu/${GUID(1)}/as`,
      audience: API,
      clients: [GUID(5)],
      rolesMap: { Readers: 'reader' },
    },
    header: { typ: undefined, kid: 'RS256' },
    claims: {
      client_id: GUID(5),
      iss: `https://auth.pingone.eu/${GUID(1)}/as`,
      jti: 'j1',
      aud: [API],
      scope: 'openid read:orders',
      sub: GUID(2),
      sid: GUID(6),
      env: GUID(1),
      groups: ['Readers'],
    },
    identity: { client: GUID(5), session: GUID(6) },
    withoutRoles: { groups: [] },
    accepted: {
      'a token of an application': { claims: { sub: undefined, sid: undefined } },
      'the type of RFC 9068': { header: { typ: 'at+jwt' } },
    },
    refused: {
      'an ID token': {
        claims: { client_id: undefined, scope: undefined, nonce: 'n' },
        check: 'client_id',
      },
      'a token for another audience': {
        claims: { aud: ['https://api.pingone.com'] },
        check: 'aud',
      },
      'a token of another client': { claims: { client_id: GUID(6) }, check: 'client_id' },
      'a token of another environment': {
        claims: { iss: `https://auth.pingone.eu/${GUID(9)}/as` },
        check: 'iss',
      },
    },
  },

  stytch: {
    entry: {
      preset: 'stytch',
      issuer: 'stytch.com/project-test-1',
      audience: 'project-test-1',
      jwksUri: 'https://test.stytch.com/v1/sessions/jwks/project-test-1',
    },
    header: { typ: undefined },
    claims: {
      aud: ['project-test-1'],
      'https://stytch.com/session': {
        id: 'session-test-1',
        started_at: '2026-01-01T00:00:00Z',
        attributes: { user_agent: '', ip_address: '' },
        authentication_factors: [{ type: 'magic_link', delivery_method: 'email' }],
        roles: ['reader'],
      },
      'https://stytch.com/organization': { organization_id: 'organization-1', slug: 'acme' },
      iss: 'stytch.com/project-test-1',
      sub: 'member-test-1',
    },
    identity: { session: 'session-test-1', tenant: 'organization-1' },
    withoutRoles: { 'https://stytch.com/session': { id: 'session-test-1', roles: ['member'] } },
    accepted: { 'a token with typ': { header: { typ: 'JWT' } } },
    refused: {
      'an ID token': {
        claims: { 'https://stytch.com/session': undefined, nonce: 'n' },
        check: 'refused_claim',
      },
      'a token for another audience': { claims: { aud: ['connected-app'] }, check: 'aud' },
      'a token of another client': { claims: { iss: 'stytch.com/project-test-2' }, check: 'iss' },
      'a token of an application': {
        claims: { 'https://stytch.com/session': undefined, scope: 'read:users' },
        check: 'required_claim',
      },
    },
  },

  supabase: {
    entry: { preset: 'supabase', issuer: 'https://ref.supabase.co/auth/v1' },
    header: { alg: 'ES256', typ: 'JWT' },
    claims: {
      aal: 'aal1',
      amr: [{ method: 'password', timestamp: 1 }],
      app_metadata: { provider: 'email', providers: ['email'], roles: ['reader'] },
      aud: 'authenticated',
      email: 'user@example.com',
      is_anonymous: false,
      iss: 'https://ref.supabase.co/auth/v1',
      phone: '',
      role: 'authenticated',
      session_id: GUID(3),
      sub: GUID(2),
      user_metadata: { roles: ['admin'] },
    },
    identity: { session: GUID(3), roles: ['reader'] },
    withoutRoles: { app_metadata: { provider: 'email' }, user_metadata: { roles: ['reader'] } },
    accepted: {
      'a role in a text': { claims: { app_metadata: { role: 'reader' } } },
      'a role of a hook': { claims: { app_metadata: {}, user_role: 'reader' } },
    },
    refused: {
      'an ID token': { claims: { aud: 'oauth-client', nonce: 'n' }, check: 'aud' },
      'a token for another audience': { claims: { aud: 'anon' }, check: 'aud' },
      'a token of another client': {
        claims: { iss: 'https://other.supabase.co/auth/v1' },
        check: 'iss',
      },
      'the key of the service': { claims: { role: 'service_role' }, check: 'required_claim' },
      'the public key': { claims: { role: 'anon' }, check: 'required_claim' },
      'an anonymous user': { claims: { is_anonymous: true }, check: 'required_claim' },
    },
  },

  workos: {
    entry: {
      preset: 'workos',
      issuer: 'https://api.workos.com/user_management/client_123',
      audience: 'client_123',
      rolesMap: { member: 'reader' },
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://api.workos.com/user_management/client_123',
      client_id: 'client_123',
      sub: 'user_01HBEQKA6K4QJAS93VPE39W1JT',
      org_id: 'org_01HRDMC6CM357W30QMHMQ96Q0S',
      role: 'member',
      roles: ['member'],
      permissions: ['posts:read', 'posts:write'],
      entitlements: ['audit-logs'],
      sid: 'session_01HQSXZGF8FHF7A9ZZFCW4387R',
      jti: '01HQSXZXPPFPKMDD32RKTFY6PV',
    },
    identity: {
      client: 'client_123',
      tenant: 'org_01HRDMC6CM357W30QMHMQ96Q0S',
      session: 'session_01HQSXZGF8FHF7A9ZZFCW4387R',
    },
    withoutRoles: { role: undefined, roles: undefined },
    refused: {
      'an ID token': { claims: { aud: 'client_other', nonce: 'n' }, check: 'aud' },
      'a token for another audience': { claims: { aud: 'https://mcp.example.com' }, check: 'aud' },
      'a token of another client': { claims: { client_id: 'client_456' }, check: 'aud' },
      'a token of a consent': { claims: { sid: 'app_consent_1' }, check: 'required_claim' },
    },
  },

  zitadel: {
    entry: {
      preset: 'zitadel',
      issuer: 'https://instance.zitadel.cloud',
      audience: '180025476050993153',
      clients: ['287401958304129025@shop'],
    },
    header: { typ: 'JWT' },
    claims: {
      iss: 'https://instance.zitadel.cloud',
      sub: '287401958304129026',
      aud: ['287401958304129025@shop', '180025476050993153'],
      azp: '287401958304129025@shop',
      jti: 'V2_1',
      'urn:zitadel:iam:org:project:roles': {
        reader: { '180025476050993150': 'acme.zitadel.cloud' },
      },
      'urn:zitadel:iam:user:resourceowner:id': '180025476050993150',
    },
    identity: {
      client: '287401958304129025@shop',
      tenant: '180025476050993150',
      roles: ['reader'],
    },
    withoutRoles: { 'urn:zitadel:iam:org:project:roles': { other: {} } },
    accepted: {
      'roles of the project': {
        claims: {
          'urn:zitadel:iam:org:project:roles': undefined,
          'urn:zitadel:iam:org:project:180025476050993153:roles': { reader: {} },
        },
      },
      'a token without typ': { header: { typ: undefined } },
      'a token that names the client in client_id': {
        claims: { azp: undefined, client_id: '287401958304129025@shop' },
      },
    },
    refused: {
      'an ID token': { claims: { jti: undefined, at_hash: 'h' }, check: 'refused_claim' },
      'an ID token without at_hash': { claims: { jti: undefined }, check: 'required_claim' },
      'a token for another audience': { claims: { aud: ['other'] }, check: 'aud' },
      'a token of another client': { claims: { azp: 'other' }, check: 'client_id' },
      'a token of another instance': {
        claims: { iss: 'https://other.zitadel.cloud' },
        check: 'iss',
      },
    },
  },
}
