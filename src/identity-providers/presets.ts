/**
 * The tokens of known identity providers: fields of an entry of `ISSUERS`, which the entry can
 * replace one by one. `sources.ts` says where each row comes from. This table is part of every
 * gateway, so it contains nothing else.
 */

type Claim = string | readonly (string | readonly string[])[]
type Value = string | boolean | null

export interface Preset {
  readonly issuer?: string
  /** `{issuer}`: the issuer is an audience, in addition to those of the entry. */
  readonly audience?: string
  /** `{issuer}` is replaced by the issuer without a trailing slash. Default: from its metadata. */
  readonly jwksUri?: string
  readonly algorithms?: readonly string[]
  readonly typ: string | readonly string[]
  readonly audienceClaim?: Claim
  readonly subjectClaim?: Claim
  readonly clientClaim?: Claim
  readonly tenantClaim?: Claim
  readonly sessionClaim?: Claim
  readonly tokenIdClaim?: Claim
  readonly scopeClaim?: Claim
  readonly rolesClaim?: Claim
  readonly rolesSeparator?: string
  readonly rolesMap?: Readonly<Record<string, string>>
  readonly tokenUse?: 'id'
  readonly tokenSources?: readonly { readonly header: string; readonly fromCookie?: string }[]
  readonly clients?: readonly string[]
  readonly require?: Readonly<Record<string, Value | readonly Value[]>>
  readonly refuse?: readonly string[]
  readonly logoutTokenExp?: 'optional'
  /** Of ID tokens and logout tokens, unless it is RS256. */
  readonly idTokenAlgorithm?: string
  /** The entry must restrict one of these claims in `require`: anybody can get a token. */
  readonly restrict?: readonly string[]
}

/** The token names a client. ID tokens of the provider do not. */
const ANY_CLIENT = ['*']
const UNTYPED = ['JWT', 'none']
const EITHER = ['JWT', 'at+jwt']
const ANY = ['at+jwt', 'JWT', 'none']

export const PRESETS = {
  auth0: {
    typ: EITHER,
    clients: ANY_CLIENT,
    tenantClaim: 'org_id',
    scopeClaim: [['scope'], ['permissions']],
  },
  authentik: {
    typ: EITHER,
    clients: ANY_CLIENT,
    require: { uid: '*' },
    refuse: ['events'],
    rolesClaim: [['roles'], ['groups']],
    logoutTokenExp: 'optional',
  },
  'better-auth': {
    typ: UNTYPED,
    jwksUri: '{issuer}/api/auth/jwks',
    require: { id: '*' },
    rolesClaim: [['roles'], ['role']],
    rolesSeparator: ',',
    tenantClaim: 'activeOrganizationId',
  },
  clerk: {
    typ: 'JWT',
    audienceClaim: 'azp',
    require: { sid: '*', sts: ['active', null] },
    rolesClaim: [['o', 'rol'], ['org_role']],
    rolesMap: { 'org:*': '*', '*': '*' },
    tenantClaim: [['o', 'id'], ['org_id']],
  },
  'cloudflare-access': {
    typ: 'JWT',
    jwksUri: '{issuer}/cdn-cgi/access/certs',
    require: { type: 'app' },
    subjectClaim: [['sub'], ['common_name']],
    rolesClaim: [['custom', 'groups'], ['groups']],
    tokenSources: [{ header: 'Cf-Access-Jwt-Assertion', fromCookie: 'CF_Authorization' }],
  },
  cognito: {
    typ: ANY,
    audienceClaim: 'client_id',
    require: { token_use: 'access' },
    rolesClaim: 'cognito:groups',
    sessionClaim: 'origin_jti',
  },
  'cognito-id': {
    typ: UNTYPED,
    tokenUse: 'id',
    require: { token_use: 'id' },
    clientClaim: 'aud',
    rolesClaim: 'cognito:groups',
    sessionClaim: 'origin_jti',
  },
  descope: {
    audience: '{issuer}',
    algorithms: ['RS256', 'ES384'],
    typ: 'JWT',
    audienceClaim: 'iss',
    require: { drn: 'DS' },
    tenantClaim: 'dct',
  },
  entra: {
    issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    typ: EITHER,
    clients: ANY_CLIENT,
    require: { tid: '*' },
    clientClaim: [['azp'], ['appid']],
    tenantClaim: 'tid',
    tokenIdClaim: [['jti'], ['uti']],
    rolesClaim: [['roles'], ['groups']],
  },
  firebase: {
    typ: 'JWT',
    tokenUse: 'id',
    require: { auth_time: '*' },
    rolesClaim: [['roles'], ['role']],
    tenantClaim: 'firebase.tenant',
  },
  fusionauth: {
    typ: EITHER,
    require: { applicationId: '*' },
    clientClaim: 'aud',
    tenantClaim: 'tid',
  },
  'github-actions': {
    issuer: 'https://token.actions.githubusercontent.com',
    typ: 'JWT',
    clientClaim: 'repository',
    tenantClaim: 'repository_owner',
    rolesClaim: [['repository'], ['sub']],
    restrict: ['repository', 'repository_id', 'repository_owner', 'repository_owner_id', 'sub'],
  },
  'gitlab-ci': {
    issuer: 'https://gitlab.com',
    typ: 'JWT',
    require: { job_id: '*' },
    clientClaim: 'project_path',
    tenantClaim: 'namespace_path',
    rolesClaim: [['project_path'], ['sub']],
    restrict: ['project_path', 'project_id', 'namespace_path', 'namespace_id', 'sub'],
  },
  google: {
    issuer: 'https://accounts.google.com',
    typ: 'JWT',
    tokenUse: 'id',
    require: { email_verified: [true, 'true', null] },
    clientClaim: 'azp',
    tenantClaim: 'hd',
    rolesClaim: [['hd'], ['email']],
  },
  keycloak: {
    typ: EITHER,
    clients: ANY_CLIENT,
    require: { typ: ['Bearer', 'DPoP'] },
    refuse: ['at_hash', 'events'],
    clientClaim: [['azp'], ['client_id']],
    sessionClaim: [['sid'], ['session_state']],
    rolesClaim: [
      ['realm_access', 'roles'],
      ['resource_access', '{audience}', 'roles'],
    ],
  },
  kubernetes: {
    algorithms: ['RS256', 'ES256', 'ES384', 'ES512'],
    typ: UNTYPED,
    require: { sub: 'system:serviceaccount:*' },
    clientClaim: [['kubernetes.io', 'serviceaccount', 'uid']],
    tenantClaim: [['kubernetes.io', 'namespace']],
    rolesClaim: 'sub',
  },
  logto: {
    algorithms: ['ES384', 'ES256', 'RS256'],
    idTokenAlgorithm: 'ES384',
    typ: 'at+jwt',
    tenantClaim: 'organization_id',
  },
  okta: {
    typ: ANY,
    clients: ANY_CLIENT,
    require: { jti: 'AT.*' },
    clientClaim: 'cid',
    scopeClaim: 'scp',
    rolesClaim: [['roles'], ['groups']],
  },
  ory: {
    typ: EITHER,
    clients: ANY_CLIENT,
    clientClaim: 'client_id',
    scopeClaim: [['scp'], ['scope']],
    rolesClaim: [['ext', 'roles'], ['roles']],
    tenantClaim: [['ext', 'tenant'], ['tenant']],
    logoutTokenExp: 'optional',
  },
  ping: {
    typ: ANY,
    clients: ANY_CLIENT,
    clientClaim: 'client_id',
    subjectClaim: [['sub'], ['client_id']],
    rolesClaim: [['roles'], ['groups']],
  },
  stytch: {
    typ: UNTYPED,
    require: { 'https://stytch.com/session': '*' },
    sessionClaim: [['https://stytch.com/session', 'id']],
    tenantClaim: [['https://stytch.com/organization', 'organization_id']],
    rolesClaim: [['https://stytch.com/session', 'roles']],
  },
  supabase: {
    audience: 'authenticated',
    typ: 'JWT',
    jwksUri: '{issuer}/.well-known/jwks.json',
    require: { role: 'authenticated', is_anonymous: [false, null], client_id: null },
    sessionClaim: 'session_id',
    rolesClaim: [['app_metadata', 'roles'], ['app_metadata', 'role'], ['user_role']],
  },
  workos: {
    audience: '{issuer}',
    typ: 'JWT',
    audienceClaim: [['client_id'], ['iss']],
    require: { sid: 'session_*' },
    tenantClaim: 'org_id',
    scopeClaim: [['scope'], ['permissions']],
    rolesClaim: [['roles'], ['role']],
  },
  zitadel: {
    typ: ANY,
    clients: ANY_CLIENT,
    require: { jti: '*' },
    tenantClaim: 'urn:zitadel:iam:user:resourceowner:id',
    rolesClaim: [
      ['urn:zitadel:iam:org:project:roles'],
      ['urn:zitadel:iam:org:project:{audience}:roles'],
    ],
  },
} as const satisfies Readonly<Record<string, Preset>>

export type PresetName = keyof typeof PRESETS
