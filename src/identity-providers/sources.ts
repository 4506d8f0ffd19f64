/** Sources of the rows of `presets.ts`, and notes for operators. Gateways do not contain them. */
import type { PresetName } from './presets.ts'

export interface Source {
  readonly name: string
  /** The provider's documentation of its tokens. */
  readonly links: readonly [string, ...string[]]
  /** When `copy` was read. Absent if no documentation that describes the tokens was read. */
  readonly date?: string
  /** The copy of the links that was read, and how much of it. */
  readonly copy?: string
  /** Source code and sample tokens that were read, with the commit. */
  readonly code?: readonly string[]
  /** The facts that neither of them confirmed. */
  readonly unverified?: readonly string[]
  /** The form of the issuer. */
  readonly issuer: string
  /** The value that `audience` is compared with. */
  readonly audience: string
  readonly notes: readonly string[]
}

const READ = '2026-11-23'

/** Printed for a row without a date. */
export const NOT_VERIFIED = "not verified against the provider's documentation"

export const SOURCES: Readonly<Record<PresetName, Source>> = {
  auth0: {
    name: 'Auth0',
    links: [
      'https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles',
      'https://auth0.com/docs/manage-users/organizations/using-tokens',
    ],
    date: READ,
    copy: 'archived pages: the profiles with both samples; organizations in part',
    unverified: ['the claims of ID tokens besides those of the sample'],
    issuer: 'https://TENANT.auth0.com/',
    audience: 'the identifier of the API',
    notes: [
      'The issuer ends with a slash.',
      'Add roles with an action, in a claim such as https://api.example.com/roles, and set rolesClaim to it.',
      'Permissions of the API (RBAC) are read as scopes; scopesMap translates read:orders.',
      'Tokens of the default profile have no jti: revoking one revokes all tokens of its subject that were issued until then.',
    ],
  },
  authentik: {
    name: 'authentik',
    links: [
      'https://docs.goauthentik.io/add-secure-apps/providers/oauth2/',
      'https://github.com/goauthentik/authentik/blob/main/authentik/providers/oauth2/id_token.py',
    ],
    code: ['goauthentik/authentik@014e22c3d094 authentik/providers/oauth2/id_token.py'],
    unverified: [
      'the header typ',
      'groups in access tokens: the documentation says only that the scope profile includes them',
    ],
    issuer: 'https://HOST/application/o/SLUG/',
    audience: 'the client id of the provider',
    notes: ['The issuer ends with a slash.', 'Groups are roles; map them with rolesMap.'],
  },
  'better-auth': {
    name: 'Better Auth (JWT plugin)',
    links: ['https://better-auth.com/docs/plugins/jwt'],
    date: READ,
    copy: 'docs/content/docs/plugins/jwt.mdx of better-auth/better-auth at 00a4a290ac57',
    code: ['better-auth/better-auth@0034e0223f9c packages/better-auth/src/plugins/jwt/sign.ts'],
    unverified: ['the claims of ID tokens of the OIDC provider plugin'],
    issuer: 'the baseURL of the app',
    audience: 'the baseURL of the app',
    notes: [
      'The key set is at /api/auth/jwks; set jwksUri for another basePath.',
      'A custom definePayload must keep id, or require must replace that rule.',
      'Several roles of one user are one text with commas, which is split.',
    ],
  },
  clerk: {
    name: 'Clerk',
    links: ['https://clerk.com/docs/guides/sessions/session-tokens'],
    date: READ,
    copy: 'docs/guides/sessions/session-tokens.mdx of clerk/clerk-docs at 03ffcd8938b2',
    unverified: ['the header typ'],
    issuer: 'https://clerk.YOUR-SITE, or https://NAME.clerk.accounts.dev',
    audience: 'the origins of your application: azp is compared',
    notes: [
      'Session tokens of versions 1 and 2; the role of the active organization.',
      'Tokens of native applications have no azp and are refused.',
      'A session with a pending task (sts) is refused.',
    ],
  },
  'cloudflare-access': {
    name: 'Cloudflare Access',
    links: [
      'https://developers.cloudflare.com/cloudflare-one/identity/authorization-cookie/application-token',
    ],
    date: READ,
    copy: 'application-token.mdx of cloudflare/cloudflare-docs at 12de1227975e',
    unverified: ['custom.groups', 'the path of the key set'],
    issuer: 'https://TEAM.cloudflareaccess.com',
    audience: 'the AUD tag of the application',
    notes: [
      'The token is read from Cf-Access-Jwt-Assertion, where Access sends it, and not from Authorization.',
      'Groups are in custom.groups if the identity provider of the team sends them.',
    ],
  },
  cognito: {
    name: 'Amazon Cognito, access tokens',
    links: [
      'https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html',
    ],
    date: READ,
    copy: 'archived pages in part: the header and the claims that the text names',
    unverified: ['the payload: client_id, token_use, origin_jti, aud'],
    issuer: 'https://cognito-idp.REGION.amazonaws.com/POOL',
    audience: 'the ids of the app clients: client_id is compared',
    notes: [
      'Groups are roles. A token with aud (resource binding) must name an audience there too.',
    ],
  },
  'cognito-id': {
    name: 'Amazon Cognito, ID tokens',
    links: [
      'https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-id-token.html',
    ],
    date: READ,
    copy: 'archived pages: the header and the sample payload',
    issuer: 'https://cognito-idp.REGION.amazonaws.com/POOL',
    audience: 'the ids of the app clients',
    notes: ['Prefer cognito: ID tokens are for the client, not for an API.'],
  },
  descope: {
    name: 'Descope',
    links: ['https://docs.descope.com/session-overview'],
    date: READ,
    copy: 'archived page: the list of claims',
    code: ['descope/python-sdk pull request 28: sample tokens (drn DS and DSR, ES384, typ JWT)'],
    unverified: ['roles beside tenants', 'the issuer as a URL'],
    issuer: 'https://api.descope.com/PROJECT, or the project id alone',
    audience: 'the issuer (always included): a project is one application',
    notes: [
      'With a project id as the issuer, set jwksUri to https://api.descope.com/PROJECT/.well-known/jwks.json.',
      'If a JWT template adds aud, list its value in audience.',
      'Roles of the project are read, not those of its tenants.',
    ],
  },
  entra: {
    name: 'Microsoft Entra ID',
    links: [
      'https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference',
      'https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference',
    ],
    date: READ,
    copy: 'both pages in docs/identity-platform of MicrosoftDocs/entra-docs, at 003f1aad061e and 00281281df91',
    issuer:
      'https://login.microsoftonline.com/TENANT/v2.0 (version 2), https://sts.windows.net/TENANT/ (version 1), or tenants for several',
    audience: 'the client id of the API (version 2), its api:// URI (version 1), or both',
    notes: [
      'Application roles are in roles, groups are ids in groups; map them with rolesMap.',
      'For several tenants, list them in tenants in place of issuer; common is not accepted.',
      'uti is the id of a token, by which a single token is revoked.',
    ],
  },
  firebase: {
    name: 'Firebase Authentication',
    links: [
      'https://firebase.google.com/docs/reference/admin/node/firebase-admin.auth.decodedidtoken',
      'https://firebase.google.com/docs/auth/admin/verify-id-tokens',
    ],
    date: READ,
    copy: 'archived pages in part: the claims of the reference',
    code: ['firebase/firebase-admin-node@00f917a6afc1 src/auth/token-verifier.ts'],
    unverified: ['the header typ'],
    issuer: 'https://securetoken.google.com/PROJECT',
    audience: 'the project id',
    notes: ['Its API credentials are ID tokens. Roles are custom claims: roles or role.'],
  },
  fusionauth: {
    name: 'FusionAuth',
    links: ['https://fusionauth.io/docs/lifecycle/authenticate-users/oauth/tokens'],
    date: READ,
    copy: 'tokens.mdx and _access-token-claims.mdx of FusionAuth/fusionauth-site at 009ece477d79',
    issuer: 'the issuer of the tenant settings',
    audience: 'the application id',
    notes: [
      'If the issuer is not a URL, set jwksUri to https://HOST/.well-known/jwks.json.',
      'Tokens must have applicationId: ID tokens have none since version 1.24. Tokens of entities (client credentials) have none either; "applicationId": ["*", null] in require accepts them.',
    ],
  },
  'github-actions': {
    name: 'GitHub Actions',
    links: ['https://docs.github.com/en/actions/reference/security/oidc'],
    date: READ,
    copy: 'content/actions/reference/security/oidc.md of github/docs at 051718f297e1, to the section on custom claims',
    issuer: 'https://token.actions.githubusercontent.com (default)',
    audience: 'the audience that the workflow requests',
    notes: [
      'Every repository on GitHub can get a token for your audience: require must restrict the owner or the repository.',
      'The repository and sub are roles; map them with rolesMap. A repository chooses the names of its environments, so a name alone is no role.',
      'sub contains ids in repositories created after 2026-07-15: repo:OWNER@ID/REPO@ID:ref:BRANCH.',
    ],
  },
  'gitlab-ci': {
    name: 'GitLab CI/CD',
    links: ['https://docs.gitlab.com/ci/secrets/id_token_authentication'],
    date: READ,
    copy: 'doc/ci/secrets/id_token_authentication.md of gitlabhq/gitlabhq at 0045970352e8; the page of version 17.5 in part',
    code: ['GitLab lib/json_web_token/rsa_token.rb (commit unknown): the header'],
    unverified: ['the claims of other tokens of GitLab'],
    issuer: 'https://gitlab.com (default), or your instance',
    audience: 'aud in id_tokens of the job',
    notes: [
      'Every project of the instance can get a token for your audience: require must restrict the namespace or the project.',
      'The project and sub are roles; map them with rolesMap. A project chooses the names of its environments, so a name alone is no role.',
    ],
  },
  google: {
    name: 'Google',
    links: [
      'https://developers.google.com/identity/openid-connect/reference',
      'https://cloud.google.com/nodejs/docs/reference/google-auth-library/latest/google-auth-library/tokenpayload',
    ],
    date: READ,
    copy: 'archived pages in part: the issuer; the claims',
    unverified: ['the header typ', 'tokens of service accounts'],
    issuer: 'https://accounts.google.com (default)',
    audience: 'the client ids',
    notes: [
      'ID tokens: access tokens of Google are opaque.',
      'The Workspace domain and the email address are roles; map them with rolesMap.',
      'Tokens with an email address that is not verified are refused.',
    ],
  },
  keycloak: {
    name: 'Keycloak',
    links: [
      'https://www.keycloak.org/docs/latest/server_admin/#_protocol-mappers',
      'https://www.keycloak.org/securing-apps/oidc-layers',
    ],
    code: [
      'keycloak/keycloak@04a1d81b9538 core/src/main/java/org/keycloak/util/TokenUtil.java',
      'keycloak/keycloak@049a7fa6c06f core/src/main/java/org/keycloak/representations/AccessToken.java',
      'keycloak/keycloak@008e7e7ec7a7 services/src/main/java/org/keycloak/jose/jws/DefaultTokenManager.java',
    ],
    unverified: ['azp and sid', 'when the header is at+jwt', 'the default audience'],
    issuer: 'https://HOST/realms/REALM',
    audience: 'the client id of the API: add an audience mapper, because the default is account',
    notes: ['Roles of the realm and of the clients that are audiences.'],
  },
  kubernetes: {
    name: 'Kubernetes service accounts',
    links: [
      'https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/',
      'https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/',
    ],
    code: [
      'kubernetes/kubernetes@031075d149ca pkg/serviceaccount/claims.go',
      'kubernetes/kubernetes@023feb4a622f pkg/serviceaccount/jwt.go',
      'kubernetes/kubernetes@2376984a265a pkg/serviceaccount/externaljwt/plugin/plugin.go',
    ],
    unverified: ['the claims of newer versions: jti, node'],
    issuer: '--service-account-issuer of the API server',
    audience: 'the audience of the projected volume',
    notes: [
      'The subject is a role; map it with rolesMap: { "system:serviceaccount:shop:*": "reader" }.',
      'The metadata must be public, or set jwksUri or jwks.',
    ],
  },
  logto: {
    name: 'Logto',
    links: ['https://docs.logto.io/authorization/validate-access-tokens'],
    date: READ,
    copy: 'archived page in part: issuer and key set; its table of aud, organization_id and scope in a translation of logto-io/docs',
    code: [
      'panva/node-oidc-provider@0243964c369b lib/models/formats/jwt.js, the library that Logto uses',
    ],
    unverified: ['ES384 as the default'],
    issuer: 'https://TENANT.logto.app/oidc',
    audience: 'the identifier of the API resource',
    notes: ['Roles need a custom claim; permissions are scopes.'],
  },
  okta: {
    name: 'Okta, custom authorization server',
    links: [
      'https://support.okta.com/help/s/article/the-typ-field-is-missing-from-the-access-token-header',
      'https://support.okta.com/help/s/article/list-of-reserved-claim-names',
      'https://developer.okta.com/docs/guides/customize-tokens-groups-claim/overview/',
    ],
    date: READ,
    copy: 'archived pages: the header; the names cid and uid; the overview of the guide to groups claims',
    unverified: [
      'jti and scp, described at https://developer.okta.com/docs/reference/api/oidc/#access-token',
    ],
    issuer: 'https://DOMAIN/oauth2/SERVER',
    audience: 'the audience of the authorization server, such as api://default',
    notes: [
      'Add a groups claim to access tokens and map the groups with rolesMap. If groups is reserved at your server, choose another name and set rolesClaim to it.',
      'Tokens of the org authorization server are for Okta only and cannot be verified.',
    ],
  },
  ory: {
    name: 'Ory (Hydra, Ory Network)',
    links: ['https://www.ory.sh/docs/oauth2-oidc/jwt-access-token'],
    date: READ,
    copy: 'docs/oauth2-oidc/jwt-access-token.mdx of ory/docs at 378ce260155b',
    code: [
      'ory/hydra@00899577a8ef oauth2/session.go',
      'ory/fosite@a5f0b09bf31c token/jwt/token.go',
    ],
    unverified: ['the form of the issuer'],
    issuer: 'https://SLUG.projects.oryapis.com',
    audience: 'the audience that the client requests; without one, aud is empty',
    notes: [
      'Needs the JWT strategy for access tokens. Roles are session data: ext.roles or roles.',
    ],
  },
  ping: {
    name: 'PingOne',
    links: [
      'https://developer.pingidentity.com/pingone-api/foundations/authentication-concepts/access-tokens-and-id-tokens/token-claims.html',
    ],
    date: READ,
    copy: 'archived pages: the claims of access tokens, and the header',
    unverified: ['typ JWT', 'the claims of ID tokens'],
    issuer: 'https://auth.pingone.REGION/ENVIRONMENT/as',
    audience: 'the audience of the custom resource',
    notes: ['Map a groups or roles attribute of the resource to the token.'],
  },
  stytch: {
    name: 'Stytch',
    links: ['https://stytch.com/docs/multi-tenant-auth/manage-sessions/jwts-and-tokens'],
    code: [
      'stytchauth/stytch-node@0112440dde74 lib/shared/sessions.ts',
      'stytchauth/stytch-node issue 354: a sample token of a user',
    ],
    unverified: ['the header typ', 'the form of the issuer', 'the URL of the key set'],
    issuer: 'stytch.com/PROJECT, or the custom domain',
    audience: 'the project id',
    notes: [
      'The issuer is no URL: set jwksUri to https://api.stytch.com/v1/sessions/jwks/PROJECT, with /b2b/ before sessions for organizations, at test.stytch.com for test projects.',
    ],
  },
  supabase: {
    name: 'Supabase Auth',
    links: [
      'https://supabase.com/docs/guides/auth/jwt-fields',
      'https://supabase.com/docs/guides/auth/oauth-server/token-security',
    ],
    date: READ,
    copy: 'apps/docs/content/guides/auth/jwt-fields.mdx of supabase/supabase at 317f7920cc2b; the sample of the second page',
    code: ['supabase/auth@058836f42649 internal/tokens/service.go'],
    unverified: ['user_role of a hook', 'the header typ'],
    issuer: 'https://REF.supabase.co/auth/v1',
    audience: 'authenticated (default)',
    notes: [
      'Needs asymmetric signing keys. Roles are in app_metadata, or user_role of a hook; users can change user_metadata.',
      'Anonymous users are refused; "is_anonymous": "*" in require accepts them too.',
      'Tokens of OAuth clients of the project (client_id) are refused, because such a client could use all roles of its user; "client_id": ["CLIENT", null] in require accepts one.',
    ],
  },
  workos: {
    name: 'WorkOS AuthKit, session tokens',
    links: ['https://workos.com/docs/reference/authkit/session-tokens'],
    date: READ,
    copy: 'archived page: the sample token',
    code: ['workos/workos-node pull request 1694: the issuer of a client'],
    unverified: [
      'client_id: the sample does not have it, an issue of workos/emulate (38) calls it documented',
      'the header typ',
    ],
    issuer:
      'https://api.workos.com/user_management/CLIENT, https://api.workos.com in older environments, or the custom domain',
    audience: 'the client id: client_id is compared, and in tokens without it, the issuer',
    notes: [
      'If there is no metadata, set jwksUri to https://api.workos.com/sso/jwks/CLIENT. It must be the key set of your client if the issuer is https://api.workos.com.',
      'If a JWT template adds aud, list its value in audience beside the client id.',
    ],
  },
  zitadel: {
    name: 'ZITADEL',
    links: [
      'https://zitadel.com/docs/apis/openidoauth/claims',
      'https://zitadel.com/docs/guides/integrate/retrieve-user-roles',
    ],
    date: READ,
    copy: 'archived page of claims in part: the table to jti',
    code: [
      'zitadel/oidc@81322d90d32a pkg/op/signer.go and pkg/oidc/token.go',
      'zitadel/zitadel@1664f7e2f1b5 internal/api/oidc/token.go',
    ],
    unverified: ['the claims of roles and of the organization'],
    issuer: 'https://INSTANCE.zitadel.cloud',
    audience: 'the project id',
    notes: [
      'Set the token type of the application to JWT, and assert roles on authentication.',
      'A role counts whichever organization granted it.',
    ],
  },
}
