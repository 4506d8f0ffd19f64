/** The names of a feature, in the spelling of each place. */

/** Names that the gateway uses itself, or may use later, in paths, permissions or variables. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'access account admin api apiKeyLookups apiKeys audit authorization authorizationCode authorizationServer authority ' +
    'authzen bans check clients client cloudflare config console consents consent cors decide docs env expand ' +
    'explanations feature features forwardAuth gateway healthz host introspection issuer issuers jwks keys limits limit ' +
    'mcp metrics node oauth openapi openapiRoutes openfga operators origin origins otlp plans policy port portcullis ' +
    'proxy public readyz redis relations replay requests revocations routes server sessions signIn signals signatures ' +
    'signing tenants timings tokens trusted upstash usage'
  ).split(' '),
)

export const isReserved = (name: string): boolean => RESERVED.has(name)

/** Camel case. */
export const FEATURE_NAME = /^[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)*$/

const joined = (name: string, separator: string) =>
  name.replace(/[A-Z]/g, (letter) => separator + letter.toLowerCase())

/** `frontDoor` is `front-door` in paths, permissions, actions and keys. */
export const kebab = (name: string): string => joined(name, '-')
/** `frontDoor` is `front_door_` at the beginning of problem codes and metrics. */
export const snake = (name: string): string => `${joined(name, '_')}_`
/** `frontDoor` is `FRONT_DOOR_` at the beginning of variables. */
export const upper = (name: string): string => snake(name).toUpperCase()

/** Features of the package, which `requires` may name. */
const OF_PACKAGE: ReadonlySet<string> = new Set([
  'authorizationServer',
  'authorizationCode',
  'openapi',
  'operators',
  'otlp',
  'signIn',
  'introspection',
])

/** Returns where the function of a feature comes from. */
export const sourceOf = (name: string): string =>
  OF_PACKAGE.has(name)
    ? `import { ${name} } from 'portcullis/${kebab(name)}'`
    : "add it to the policy's features"
