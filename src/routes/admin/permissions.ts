/** All permissions of the operators' API, metrics and timings, without the prefix `portcullis:`. */
// biome-ignore format: a table
const CALLS = [
  'clients:create', 'clients:list', 'clients:rotate', 'clients:disable',
  'api-keys:create', 'api-keys:list', 'api-keys:update', 'api-keys:rotate', 'api-keys:disable', 'api-keys:usage',
  'revocations:create', 'revocations:list', 'revocations:delete',
  'bans:create', 'bans:list', 'bans:delete',
  'limits:list', 'limits:override', 'limits:reset',
  'plans:list', 'plans:assign',
  'consents:list', 'consents:withdraw',
  'relations:write', 'relations:read', 'relations:check',
  'audit:read', 'audit:verify', 'audit:erase',
  'requests:explain', 'keys:list', 'tokens:mint', 'metrics:read', 'timings:read',
] as const

/** The last two parts of a permission. */
export type OperatorCall = (typeof CALLS)[number]

/** The whole permission of a call that a feature of the user adds. */
export type FeaturePermission = `portcullis:${string}:${string}`

export const permissionOf = (call: OperatorCall | FeaturePermission): string =>
  call.startsWith('portcullis:') ? call : `portcullis:${call}`

export const OPERATOR_PERMISSIONS: readonly string[] = /* @__PURE__ */ CALLS.map((call) =>
  permissionOf(call),
)
