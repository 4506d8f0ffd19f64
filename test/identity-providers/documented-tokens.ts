/**
 * Tokens in the shape of each provider's documentation or source code
 * (`src/identity-providers/sources.ts`), for the entries of `docs/identity-providers.md`, and tokens
 * of the same provider that these entries refuse.
 */
import type { PresetName } from '../../src/identity-providers/presets.ts'
import type { Algorithm } from '../../src/validators/jwk.ts'

type Claims = Readonly<Record<string, unknown>>

export interface Token {
  /** Changes of the accepted token; `undefined` removes a claim. */
  readonly claims?: Claims
  readonly header?: Claims
  /** Replaces all claims but the times. */
  readonly instead?: Claims
}

export interface RefusedToken extends Token {
  /** The check that refuses the token. */
  readonly check: string
}

/** Why the provider has no such token. */
type NotApplicable = string

export interface Documented {
  /** RS256 unless it says otherwise. */
  readonly header: Claims & { readonly alg?: Algorithm }
  /** Without `iat`, `exp` and `nbf`. */
  readonly claims: Claims
  /** The identity that the gateway reads, in part. */
  readonly identity: Claims
  /** Removes what gives the role `reader`. */
  readonly withoutRoles: Claims
  /** Other tokens that are accepted. */
  readonly accepted?: Readonly<Record<string, Token>>
  readonly refused: {
    readonly 'ID token': RefusedToken | NotApplicable
    readonly 'other audience': RefusedToken
    readonly 'other client': RefusedToken | NotApplicable
    readonly 'other tenant': RefusedToken
    /** Of providers with refresh tokens that are JWTs. */
    readonly 'refresh token'?: RefusedToken
  } & Readonly<Record<string, RefusedToken | NotApplicable>>
}

const GUID = (n: number) =>
  `${n}`.padStart(8, '0').replace(/^(.*)$/, '$1-aaaa-4bbb-8ccc-dddddddddddd')
const API = 'https://api.example.com'
/** Ids in the entries of the guide. */
const TENANT_ID = '9122040d-6c67-4c5b-b112-36a304b66dad'
const CLIENT_ID = '1fec8e78-bce4-4aaf-ab1b-5451cc387264'
const ENTRA_API = '7a1c8b3e-0000-4000-8000-000000000001'
const ENTRA_GROUP = 'f2c7c6a2-0000-4000-8000-000000000002'
const FUSIONAUTH_APPLICATION = '3c219e58-ed0e-4b18-ad48-f4f92793ae32'

const ID_TOKENS_ARE_NAMED = 'The preset is for ID tokens.'

export const DOCUMENTED: Readonly<Record<PresetName, Documented>> = {
  auth0: {
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
      'ID token': {
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
      'other audience': {
        claims: { aud: ['https://other.example.com', 'https://tenant.auth0.com/userinfo'] },
        check: 'aud',
      },
      'other client': { claims: { azp: 'other' }, check: 'client_id' },
      'other tenant': { claims: { iss: 'https://other.auth0.com/' }, check: 'iss' },
    },
  },

  authentik: {
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
      'ID token': { claims: { azp: undefined, uid: undefined }, check: 'client_id' },
      'other audience': { claims: { aud: 'other' }, check: 'aud' },
      'other client': { claims: { aud: 'other-client', azp: 'other-client' }, check: 'aud' },
      'other tenant': {
        claims: { iss: 'https://authentik.example.com/application/o/other/' },
        check: 'iss',
      },
      'an ID token of a provider that names the client': {
        claims: { uid: undefined },
        check: 'required_claim',
      },
    },
  },

  'better-auth': {
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
    withoutRoles: { role: 'guest,visitor' },
    accepted: { 'several roles': { claims: { role: 'visitor,user' } } },
    refused: {
      'ID token': {
        instead: {
          iss: 'https://app.example.com',
          aud: 'https://app.example.com',
          sub: 'u1',
          nonce: 'n',
          auth_time: 1,
        },
        check: 'refused_claim',
      },
      'other audience': { claims: { aud: 'https://other.test' }, check: 'aud' },
      'other client': 'The app itself is the only client.',
      'other tenant': { claims: { iss: 'https://other.example.com' }, check: 'iss' },
      'an ID token without nonce': { claims: { id: undefined }, check: 'required_claim' },
    },
  },

  clerk: {
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
      'ID token': {
        instead: {
          iss: 'https://clerk.example.com',
          sub: 'user_2o',
          aud: 'oauth-client',
          nonce: 'n',
          azp: 'https://app.example.com',
        },
        check: 'aud',
      },
      'other audience': { claims: { azp: 'https://evil.test' }, check: 'aud' },
      'other client': { claims: { azp: undefined }, check: 'aud' },
      'other tenant': { claims: { iss: 'https://other.clerk.accounts.dev' }, check: 'iss' },
      'a session with a pending task': { claims: { sts: 'pending' }, check: 'required_claim' },
      'a token of a template, without a session': {
        claims: { sid: undefined },
        check: 'required_claim',
      },
    },
  },

  'cloudflare-access': {
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
      'ID token': { claims: { type: undefined, nonce: 'n' }, check: 'refused_claim' },
      'other audience': { claims: { aud: ['the tag of another application'] }, check: 'aud' },
      'other client': 'Each application has an audience of its own.',
      'other tenant': { claims: { iss: 'https://other.cloudflareaccess.com' }, check: 'iss' },
      'the session of the team': { claims: { type: 'org' }, check: 'required_claim' },
    },
  },

  cognito: {
    header: { typ: undefined },
    claims: {
      iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Example',
      sub: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      device_key: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      'cognito:groups': ['Readers'],
      version: 2,
      client_id: '1example23456789',
      origin_jti: 'origin-1',
      event_id: 'event-1',
      token_use: 'access',
      scope: 'aws.cognito.signin.user.admin https://api.example.com/orders.read',
      auth_time: 1,
      jti: 'jti-1',
      username: 'alice',
    },
    identity: { client: '1example23456789', session: 'origin-1' },
    withoutRoles: { 'cognito:groups': undefined },
    refused: {
      'ID token': {
        claims: {
          token_use: 'id',
          aud: '1example23456789',
          client_id: undefined,
          'cognito:username': 'alice',
        },
        check: 'aud',
      },
      'other audience': { claims: { aud: 'https://other.test' }, check: 'aud' },
      'other client': { claims: { client_id: 'other' }, check: 'aud' },
      'other tenant': {
        claims: { iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Other' },
        check: 'iss',
      },
      'a token of another region': {
        claims: { iss: 'https://cognito-idp.us-east-1.amazonaws.com/eu-west-1_Example' },
        check: 'iss',
      },
      'an ID token that names the client': {
        claims: { token_use: 'id' },
        check: 'required_claim',
      },
    },
  },

  'cognito-id': {
    header: { typ: undefined },
    claims: {
      iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Ident',
      sub: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      'cognito:groups': ['Readers'],
      email_verified: true,
      'cognito:username': 'alice',
      'custom:tenant': 'acme',
      origin_jti: 'origin-1',
      aud: '1example23456789',
      event_id: 'event-1',
      token_use: 'id',
      auth_time: 1,
      jti: 'jti-1',
      at_hash: 'h',
    },
    identity: { client: '1example23456789', tenant: 'acme', session: 'origin-1' },
    withoutRoles: { 'cognito:groups': [] },
    refused: {
      'ID token': ID_TOKENS_ARE_NAMED,
      'other audience': { claims: { aud: 'other' }, check: 'aud' },
      'other client': 'The audience of an ID token is its client.',
      'other tenant': {
        claims: { iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Other' },
        check: 'iss',
      },
      'an access token': {
        claims: { token_use: 'access', aud: undefined, client_id: '1example23456789' },
        check: 'aud',
      },
      'an access token with an audience': {
        claims: { token_use: 'access', at_hash: undefined },
        check: 'required_claim',
      },
    },
  },

  descope: {
    header: { alg: 'ES384', typ: 'JWT' },
    claims: {
      amr: ['oauth'],
      dct: 'acme',
      drn: 'DS',
      iss: 'P2exampleProject',
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
        claims: { aud: ['P2exampleProject'] },
      },
    },
    refused: {
      'ID token': {
        claims: { drn: undefined, aud: 'oidc-client', nonce: 'n' },
        check: 'aud',
      },
      'other audience': { claims: { aud: ['other'] }, check: 'aud' },
      'other client': 'The project is the only application.',
      'other tenant': { claims: { iss: 'P2otherProject' }, check: 'iss' },
      'refresh token': { claims: { drn: 'DSR' }, check: 'required_claim' },
    },
  },

  entra: {
    header: { typ: 'JWT' },
    claims: {
      aud: ENTRA_API,
      iss: `https://login.microsoftonline.com/${TENANT_ID}/v2.0`,
      aio: 'x',
      azp: CLIENT_ID,
      azpacr: '0',
      name: 'Alice',
      oid: GUID(3),
      preferred_username: 'alice@example.com',
      rh: 'r',
      roles: ['Orders.Reader'],
      scp: 'Orders.Read user_impersonation',
      sub: 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
      tid: TENANT_ID,
      uti: 'u',
      ver: '2.0',
    },
    identity: {
      client: CLIENT_ID,
      tenant: TENANT_ID,
      tokenId: 'u',
      scopes: ['Orders.Read', 'user_impersonation'],
    },
    withoutRoles: { roles: undefined },
    accepted: {
      'a token of a group': { claims: { roles: undefined, groups: [ENTRA_GROUP, GUID(8)] } },
      'a token of an application': {
        claims: { scp: undefined, name: undefined, idtyp: 'app', azpacr: '1' },
      },
    },
    refused: {
      'ID token': {
        claims: { azp: undefined, azpacr: undefined, scp: undefined, nonce: 'n' },
        check: 'client_id',
      },
      'other audience': { claims: { aud: GUID(8) }, check: 'aud' },
      'other client': { claims: { azp: GUID(6) }, check: 'client_id' },
      'other tenant': {
        claims: { iss: `https://login.microsoftonline.com/${GUID(2)}/v2.0`, tid: GUID(2) },
        check: 'iss',
      },
      'a token with the issuer of all tenants': {
        claims: { iss: 'https://login.microsoftonline.com/{tenantid}/v2.0' },
        check: 'iss',
      },
    },
  },

  firebase: {
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
      'ID token': ID_TOKENS_ARE_NAMED,
      'other audience': { claims: { aud: 'other-project' }, check: 'aud' },
      'other client': 'A token names no client of the project.',
      'other tenant': {
        claims: { iss: 'https://securetoken.google.com/other-project', aud: 'other-project' },
        check: 'iss',
      },
      'an ID token of Google': {
        claims: { iss: 'https://accounts.google.com', aud: 'client' },
        check: 'aud',
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
    header: { typ: 'JWT', gty: ['authorization_code'] },
    claims: {
      applicationId: FUSIONAUTH_APPLICATION,
      aud: FUSIONAUTH_APPLICATION,
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
    identity: { client: FUSIONAUTH_APPLICATION, tenant: GUID(1), session: GUID(6) },
    withoutRoles: { roles: [] },
    refused: {
      'ID token': { claims: { at_hash: 'h', nonce: 'n' }, check: 'refused_claim' },
      'other audience': { claims: { aud: GUID(5) }, check: 'aud' },
      'other client': { claims: { aud: GUID(5), applicationId: GUID(5) }, check: 'aud' },
      'other tenant': { claims: { iss: 'https://other.fusionauth.io' }, check: 'iss' },
      'an ID token without nonce and at_hash': {
        claims: { applicationId: undefined, roles: undefined },
        check: 'required_claim',
      },
    },
  },

  'github-actions': {
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
    withoutRoles: { sub: 'repo:octo-org/octo-repo:ref:refs/heads/main', environment: undefined },
    accepted: {
      'a subject with ids': {
        claims: { sub: 'repo:octo-org@65/octo-repo@74:environment:prod' },
      },
    },
    refused: {
      'ID token': { claims: { nonce: 'n' }, check: 'refused_claim' },
      'other audience': { claims: { aud: 'https://github.com/octo-org' }, check: 'aud' },
      'other client': { claims: { repository: 'octo-org/other' }, check: 'client_id' },
      'other tenant': {
        claims: { repository_owner_id: '66', repository_owner: 'evil' },
        check: 'required_claim',
      },
      'a token of another branch': {
        claims: { ref: 'refs/heads/patch-1' },
        check: 'required_claim',
      },
      'a token of another server': {
        claims: { iss: 'https://github.example.com/_services/token' },
        check: 'iss',
      },
    },
  },

  'gitlab-ci': {
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
      ref: 'main',
      ref_type: 'branch',
      ref_protected: 'true',
      environment: 'test-environment2',
      runner_id: 1,
      runner_environment: 'self-hosted',
      sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
      jti: '235b3a54-b797-45c7-ae9a-f72d7bc6ef5b',
      iss: 'https://gitlab.com',
      sub: 'project_path:my-group/my-project:ref_type:branch:ref:main',
      aud: API,
    },
    identity: { client: 'my-group/my-project', tenant: 'my-group' },
    withoutRoles: { sub: 'project_path:my-group/my-project:ref_type:branch:ref:release' },
    refused: {
      'ID token': {
        instead: {
          iss: 'https://gitlab.com',
          sub: '1',
          aud: API,
          auth_time: 1,
          namespace_id: '72',
          project_path: 'my-group/my-project',
          ref_protected: 'true',
          groups_direct: ['my-group'],
        },
        check: 'required_claim',
      },
      'other audience': { claims: { aud: 'https://vault.example.com' }, check: 'aud' },
      'other client': { claims: { project_path: 'my-group/other' }, check: 'client_id' },
      'other tenant': {
        claims: { namespace_id: '73', namespace_path: 'evil' },
        check: 'required_claim',
      },
      'a token of a branch that is not protected': {
        claims: { ref_protected: 'false' },
        check: 'required_claim',
      },
      'a token of another instance': {
        claims: { iss: 'https://gitlab.example.com' },
        check: 'iss',
      },
    },
  },

  google: {
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
    withoutRoles: { email: 'bob@example.com' },
    refused: {
      'ID token': ID_TOKENS_ARE_NAMED,
      'other audience': { claims: { aud: 'other.apps.googleusercontent.com' }, check: 'aud' },
      'other client': {
        claims: { azp: 'android.apps.googleusercontent.com' },
        check: 'client_id',
      },
      'other tenant': { claims: { hd: 'other.example' }, check: 'required_claim' },
      'an email address that is not verified': {
        claims: { email_verified: false },
        check: 'required_claim',
      },
      'an issuer without https': { claims: { iss: 'accounts.google.com' }, check: 'iss' },
    },
  },

  keycloak: {
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
      'ID token': {
        claims: { typ: 'ID', aud: 'orders-api', nonce: 'n', at_hash: 'h' },
        check: 'refused_claim',
      },
      'other audience': { claims: { aud: 'account' }, check: 'aud' },
      'other client': { claims: { azp: 'other' }, check: 'client_id' },
      'other tenant': {
        claims: { iss: 'https://sso.example.com/realms/other' },
        check: 'iss',
      },
      'refresh token': { claims: { typ: 'Refresh' }, check: 'required_claim' },
      'an offline token': { claims: { typ: 'Offline' }, check: 'required_claim' },
      'a logout token by its typ': { claims: { typ: 'Logout' }, check: 'required_claim' },
      'an ID token without at_hash': { claims: { typ: 'ID' }, check: 'required_claim' },
      'a role of another client': {
        claims: { aud: 'account', resource_access: { account: { roles: ['reader'] } } },
        check: 'aud',
      },
    },
  },

  kubernetes: {
    header: { alg: 'ES384', typ: undefined },
    claims: {
      aud: ['orders'],
      iss: 'https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE',
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
    withoutRoles: { sub: 'system:serviceaccount:shop:other' },
    accepted: { 'a token of an external signer': { header: { typ: 'JWT' } } },
    refused: {
      'ID token': { claims: { nonce: 'n' }, check: 'refused_claim' },
      'other audience': {
        claims: { aud: ['https://kubernetes.default.svc.cluster.local'] },
        check: 'aud',
      },
      'other client': {
        claims: { sub: 'system:serviceaccount:other:web' },
        check: 'required_claim',
      },
      'other tenant': {
        claims: { iss: 'https://oidc.eks.eu-west-1.amazonaws.com/id/OTHER' },
        check: 'iss',
      },
      'a token of a user': { claims: { sub: 'alice' }, check: 'required_claim' },
    },
  },

  logto: {
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
      'ID token': {
        header: { typ: undefined },
        claims: { aud: 'web-app', client_id: undefined, at_hash: 'h' },
        check: 'typ',
      },
      'other audience': { claims: { aud: 'https://other.test' }, check: 'aud' },
      'other client': { claims: { client_id: 'other' }, check: 'client_id' },
      'other tenant': { claims: { iss: 'https://other.logto.app/oidc' }, check: 'iss' },
    },
  },

  okta: {
    header: { typ: undefined },
    claims: {
      ver: 1,
      jti: 'AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE',
      iss: 'https://example.okta.com/oauth2/default',
      aud: 'api://default',
      sub: 'alice@example.com',
      cid: '0oa1example23456',
      uid: '00ujmkLgagxeRrAg20g3',
      scp: ['openid', 'email', 'read:orders'],
      groups: ['Everyone', 'App - reader'],
      auth_time: 1,
    },
    identity: {
      client: '0oa1example23456',
      scopes: ['openid', 'email', 'read:orders'],
      roles: ['reader'],
    },
    withoutRoles: { groups: ['Everyone'] },
    refused: {
      'ID token': {
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
      'other audience': { claims: { aud: 'api://other' }, check: 'aud' },
      'other client': { claims: { cid: 'other' }, check: 'client_id' },
      'other tenant': {
        claims: { iss: 'https://example.okta.com/oauth2/other' },
        check: 'iss',
      },
      'an ID token that names a client': { claims: { jti: 'ID.1' }, check: 'required_claim' },
    },
  },

  ory: {
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
      'ID token': {
        claims: { client_id: undefined, scp: undefined, at_hash: 'h', aud: [API] },
        check: 'client_id',
      },
      'other audience': { claims: { aud: ['https://other.test'] }, check: 'aud' },
      'other client': { claims: { client_id: 'other' }, check: 'client_id' },
      'other tenant': { claims: { iss: 'https://other.projects.oryapis.com' }, check: 'iss' },
      'a token without an audience': { claims: { aud: [] }, check: 'aud' },
    },
  },

  ping: {
    header: { typ: undefined, kid: 'RS256' },
    claims: {
      client_id: CLIENT_ID,
      iss: `https://auth.pingone.eu/${TENANT_ID}/as`,
      jti: 'j1',
      aud: [API],
      scope: 'openid read:orders',
      sub: GUID(2),
      sid: GUID(6),
      env: TENANT_ID,
      groups: ['Readers'],
    },
    identity: { client: CLIENT_ID, session: GUID(6) },
    withoutRoles: { groups: [] },
    accepted: {
      'a token of an application': { claims: { sub: undefined, sid: undefined } },
      'the type of RFC 9068': { header: { typ: 'at+jwt' } },
    },
    refused: {
      'ID token': {
        claims: { client_id: undefined, scope: undefined, nonce: 'n' },
        check: 'client_id',
      },
      'other audience': { claims: { aud: ['https://api.pingone.com'] }, check: 'aud' },
      'other client': { claims: { client_id: GUID(6) }, check: 'client_id' },
      'other tenant': {
        claims: { iss: `https://auth.pingone.eu/${GUID(9)}/as` },
        check: 'iss',
      },
    },
  },

  stytch: {
    header: { typ: undefined },
    claims: {
      aud: ['project-live-1'],
      'https://stytch.com/session': {
        id: 'session-test-1',
        started_at: '2026-01-01T00:00:00Z',
        attributes: { user_agent: '', ip_address: '' },
        authentication_factors: [{ type: 'magic_link', delivery_method: 'email' }],
        roles: ['reader'],
      },
      'https://stytch.com/organization': { organization_id: 'organization-1', slug: 'acme' },
      iss: 'stytch.com/project-live-1',
      sub: 'member-test-1',
    },
    identity: { session: 'session-test-1', tenant: 'organization-1' },
    withoutRoles: { 'https://stytch.com/session': { id: 'session-test-1', roles: ['member'] } },
    accepted: { 'a token with typ': { header: { typ: 'JWT' } } },
    refused: {
      'ID token': {
        claims: { 'https://stytch.com/session': undefined, nonce: 'n' },
        check: 'refused_claim',
      },
      'other audience': { claims: { aud: ['connected-app'] }, check: 'aud' },
      'other client': {
        claims: { 'https://stytch.com/session': undefined, scope: 'read:users' },
        check: 'required_claim',
      },
      'other tenant': { claims: { iss: 'stytch.com/project-live-2' }, check: 'iss' },
    },
  },

  supabase: {
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
      'ID token': { claims: { aud: 'oauth-client', nonce: 'n' }, check: 'aud' },
      'other audience': { claims: { aud: 'anon' }, check: 'aud' },
      'other client': { claims: { client_id: GUID(9) }, check: 'required_claim' },
      'other tenant': { claims: { iss: 'https://other.supabase.co/auth/v1' }, check: 'iss' },
      'the key of the service': { claims: { role: 'service_role' }, check: 'required_claim' },
      'the public key': { claims: { role: 'anon' }, check: 'required_claim' },
      'an anonymous user': { claims: { is_anonymous: true }, check: 'required_claim' },
    },
  },

  workos: {
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
    accepted: { 'a token without client_id': { claims: { client_id: undefined } } },
    refused: {
      'ID token': { claims: { aud: 'client_other', nonce: 'n' }, check: 'aud' },
      'other audience': { claims: { aud: 'https://mcp.example.com' }, check: 'aud' },
      'other client': { claims: { client_id: 'client_456' }, check: 'aud' },
      'other tenant': {
        claims: { iss: 'https://api.workos.com/user_management/client_456' },
        check: 'iss',
      },
      'a token of a consent': { claims: { sid: 'app_consent_1' }, check: 'required_claim' },
    },
  },

  zitadel: {
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
      'ID token': { claims: { jti: undefined, at_hash: 'h' }, check: 'refused_claim' },
      'other audience': { claims: { aud: ['other'] }, check: 'aud' },
      'other client': { claims: { azp: 'other' }, check: 'client_id' },
      'other tenant': { claims: { iss: 'https://other.zitadel.cloud' }, check: 'iss' },
      'an ID token without at_hash': { claims: { jti: undefined }, check: 'required_claim' },
    },
  },
}
