/**
 * The JSON Schemas of the package accept and refuse what the gateway accepts and refuses when it starts. The last table has
 * what JSON Schema cannot express, or editors would not explain.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../src/access/relations/compile-model.ts'
import { configuredClients } from '../../../src/features/authorization-server/schemas/client.ts'
import { signInClientSchema } from '../../../src/features/sign-in/schema.ts'
import { PRESETS } from '../../../src/identity-providers/presets.ts'
import { issuers } from '../../../src/validators/issuer.ts'
import { issuerClients } from '../../../src/validators/issuer-client.ts'
import { blocksOf } from '../../docs/blocks.ts'
import { ROOT } from '../../harness/process.ts'
import { es256 } from '../../validators/environment.ts'

const ajv = new Ajv({ strict: false })
addFormats.default(ajv)
const schemaOf = (name: string) =>
  JSON.parse(readFileSync(join(ROOT, 'schemas', `${name}.json`), 'utf8'))

/** What the start of the gateway says about a value. */
const STARTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  issuers: (value) => issuers.safeParse(value).success,
  clients: (value) => configuredClients.safeParse(value).success,
  'issuer-clients'(value) {
    const parsed = issuerClients.safeParse(value)
    return (
      parsed.success &&
      parsed.data.every(
        ({ signIn }) => signIn === undefined || signInClientSchema.safeParse(signIn).success,
      )
    )
  },
  'relation-model'(value) {
    try {
      compileModel(value)
      return true
    } catch {
      return false
    }
  },
}

const VALIDATORS = Object.fromEntries(
  Object.keys(STARTS).map((name) => [name, ajv.compile(schemaOf(name))]),
)

/** Returns the answers of the schema and of the start. */
function verdicts(name: string, value: unknown) {
  const json = JSON.parse(JSON.stringify(value))
  return { schema: VALIDATORS[name]?.(json), start: STARTS[name]?.(json) }
}

/** Everybody gets tokens of this provider, so an entry must restrict a claim. */
const RESTRICTED = PRESETS['github-actions'].restrict[0]
const openToAll = { preset: 'github-actions', audience: 'api' }
const issuer = { issuer: 'https://idp.test/a', audience: 'api' }
const keys = { keys: [es256.publicJwk] }
const client = {
  id: '0190f8a0-7c3a-7000-8000-00000000c11e',
  grants: ['client_credentials'],
  secretSha256: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
}
const clientKeys = { keys: [{ ...es256.publicJwk, kid: 'a', alg: 'ES256' }] }
const ofIssuer = { issuer: 'https://idp.test', id: 'gateway', secret: 'x' }
const model = (...relations: unknown[]) => ({
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    ...relations.map((relation) => ({
      type: 'document',
      relations: { viewer: relation },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    })),
  ],
})

type Row = readonly [what: string, name: string, value: unknown]

const of = (name: string, base: object, rows: Readonly<Record<string, object>>): readonly Row[] =>
  Object.entries(rows).map(([what, change]) => [what, name, [{ ...base, ...change }]])

const GOOD: readonly Row[] = [
  ['no issuer', 'issuers', []],
  ...of('issuers', issuer, {
    'an issuer': {},
    'several audiences': { audience: ['a', 'b'] },
    'an issuer on this machine': { issuer: 'http://127.0.0.1:8080' },
    'an issuer that is no URL, with a key set': {
      issuer: 'urn:idp',
      jwksUri: 'https://idp.test/k',
    },
    'a key set': { jwks: keys },
    'a key set on this machine': { jwksUri: 'http://idp.localhost:1/k' },
    tenants: { issuer: 'https://idp.test/{tenantid}', tenants: ['a.example'] },
    'claims in each form': {
      rolesClaim: [['groups'], ['a', 'b'], 'c.d'],
      tenantClaim: ['a', 'b'],
      subjectClaim: '/a/b',
    },
    'maps and rules': {
      rolesMap: { 'app-*': '*', a: ['b'] },
      require: { a: [null, 'x*', 1, true] },
      clients: ['web-*'],
    },
    'a header in mixed case': {
      tokenSources: [
        { header: 'Authorization' },
        { header: 'Cf-Access-Jwt-Assertion', fromCookie: 'CF_Authorization' },
      ],
    },
    'a cookie': { tokenSources: [{ cookie: '__Host-t', origins: ['https://app.test:8443'] }] },
    introspection: { introspection: {} },
    userinfo: { userinfo: { audience: 'any', maxAgeSeconds: 300 } },
    'no key set': { keySet: 'none', introspection: {} },
    'no key set, and no URL': {
      ...{ issuer: 'urn:idp', keySet: 'none' },
      introspection: { endpoint: 'https://idp.test/i', form: 'opaque' },
    },
  }),
  ...of(
    'issuers',
    {},
    {
      'a preset with an issuer of its own': {
        preset: 'google',
        audience: 'web',
        require: { hd: 'example.com' },
      },
      'a preset that is open to all, with a rule': {
        ...openToAll,
        require: { [RESTRICTED]: 'a' },
      },
      'a preset of many tenants': {
        preset: 'entra',
        tenants: ['contoso.example'],
        audience: 'api://a',
      },
      'a preset with a replaced issuer': { preset: 'auth0', ...issuer },
    },
  ),
  ...of('clients', client, {
    'a client with a secret': {},
    'a client with keys': { secretSha256: undefined, jwks: clientKeys, profile: 'fapi2' },
    'a public client': {
      secretSha256: undefined,
      public: true,
      grants: ['authorization_code'],
      redirectUris: ['http://127.0.0.1/'],
    },
    'every bound': {
      name: 'web',
      scopes: ['a:*'],
      roles: ['reader'],
      audiences: ['https://a.test'],
      tenant: 'acme',
      tokenFormat: 'opaque',
      accessTokenSeconds: 300,
      dpopBound: true,
    },
  }),
  ...of('issuer-clients', ofIssuer, {
    'a client of an issuer': {},
    'a method': { method: 'client_secret_post' },
    'a sign-in': {
      signIn: {
        name: 'Staff',
        scope: 'openid email',
        signOut: { url: 'https://idp.test/o', returnTo: 'r' },
      },
    },
  }),
  ['a model', 'relation-model', { $schema: './x.json', ...model({ this: {} }) }],
  [
    'a model with a union',
    'relation-model',
    model({ union: { child: [{ this: {} }, { this: {} }] } }),
  ],
]

const BAD: readonly Row[] = [
  ['an issuer outside of a list', 'issuers', issuer],
  ...of('issuers', issuer, {
    'an unknown field': { rolesClaims: 'roles' },
    'no audience': { audience: undefined },
    'an empty audience': { audience: '' },
    'no audience in the list': { audience: [] },
    'an issuer without keys and without TLS': { issuer: 'http://idp.test' },
    'an issuer without keys that is no URL': { issuer: 'urn:idp' },
    'an issuer without keys and with a query': { issuer: 'https://idp.test?a' },
    'a key set without TLS': { jwksUri: 'http://idp.test/k' },
    'a key set with a password': { jwksUri: 'https://u:p@idp.test/k' },
    'a key set elsewhere': { jwksUri: 'http://127.0.0.1.evil.test/k' },
    'two key sets': { jwksUri: 'https://idp.test/k', jwks: keys },
    'a key set without keys': { jwks: { keys: [] } },
    'an unknown algorithm': { algorithms: ['none'] },
    'no algorithm': { algorithms: [] },
    'a tolerance above 300 s': { clockTolerance: 301 },
    'a life of 0 s': { maxTokenAge: 0 },
    'an empty claim': { rolesClaim: '' },
    'a claim with nine names': { rolesClaim: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'] },
    'two separators': { rolesSeparator: '; ' },
    'two stars': { clients: ['*-*'] },
    'two stars in a map': { rolesMap: { '*-*': 'a' } },
    'an unknown use of scopes': { scopes: 'all' },
    'a header with another meaning': { tokenSources: [{ header: 'Cookie' }] },
    'a query parameter': { tokenSources: [{ query: 'access_token' }] },
    'a page with a path': { tokenSources: [{ cookie: 'a', origins: ['https://a.test/x'] }] },
    'two kinds of calls': { introspection: {}, userinfo: { audience: 'any' } },
    'userinfo without its statement': { userinfo: {} },
    'another word for no key set': { keySet: 'None', introspection: {} },
    'no key set, and no call': { keySet: 'none' },
    'no key set, and JWTs': { keySet: 'none', introspection: { form: 'jwt' } },
    'no key set, and its URL': {
      ...{ keySet: 'none', jwksUri: 'https://idp.test/k', introspection: {} },
    },
    'no key set, and keys': { keySet: 'none', jwks: keys, introspection: {} },
    'no key set, and neither a URL nor an endpoint': {
      ...{ issuer: 'urn:idp', keySet: 'none', introspection: {} },
    },
    'tenants without a place': { tenants: ['a.example'] },
    'a place without tenants': { issuer: 'https://idp.test/{tenantid}' },
    'an alias of several tenants': { issuer: 'https://idp.test/{tenantid}', tenants: ['common'] },
  }),
  ...of(
    'issuers',
    {},
    {
      'a preset that is open to all, without a rule': openToAll,
      'a preset that is open to all, with another rule': { ...openToAll, require: { a: 'b' } },
      'an unknown preset': { preset: 'auht0', ...issuer },
      'a preset without its issuer': { preset: 'okta', audience: 'api' },
      'a preset without an audience': { preset: 'google' },
      'a preset of many tenants without one': { preset: 'entra', audience: 'api://a' },
    },
  ),
  ...of('clients', client, {
    'a client without an id': { id: undefined },
    'an id that is no UUID': { id: 'web' },
    'a client with a secret in clear text': { secretSha256: 'secret' },
    'a client with both': { jwks: clientKeys },
    'a client with neither': { secretSha256: undefined },
    'an unknown grant': { grants: ['password'] },
    'no grant': { grants: [] },
    'a profile without keys': { profile: 'fapi2' },
    'a short life': { accessTokenSeconds: 60 },
    'an unknown field of a client': { secret: 'x' },
  }),
  ...of('issuer-clients', ofIssuer, {
    'a client of an issuer without a secret': { secret: undefined },
    'an unknown method': { method: 'none' },
    'a sign-in without a name': { signIn: {} },
    'a sign-in with a picture elsewhere': { signIn: { name: 'a', apiUrl: 'http://a.test' } },
  }),
  ['a model without types', 'relation-model', { schema_version: '1.1' }],
  [
    'two kinds of usersets in one',
    'relation-model',
    model({ this: {}, computedUserset: { relation: 'a' } }),
  ],
  ['a userset of no kind', 'relation-model', model({})],
  ['a union of one', 'relation-model', model({ union: { child: [{ this: {} }] } })],
  ['an unknown kind of userset', 'relation-model', model({ any: {} })],
]

/** The start alone refuses these. */
const AT_THE_START: readonly Row[] = [
  ['two entries of one issuer', 'issuers', [issuer, issuer]],
  ['two clients with one id', 'clients', [client, client]],
  ['two clients of one issuer', 'issuer-clients', [ofIssuer, ofIssuer]],
  ...of('issuers', issuer, {
    'a symmetric algorithm without a secret': { algorithms: ['HS256'] },
    'a key that cannot be used': { jwks: { keys: [{ kty: 'EC' }] } },
    'tokens without a type, and no rule': { typ: 'none' },
    'a claim with an empty name in it': { rolesClaim: 'a..b' },
    'a star in a result, and none in the pattern': { rolesMap: { a: '*' } },
    'an origin with its default port': {
      tokenSources: [{ cookie: 'a', origins: ['https://a.test:443'] }],
    },
    'origins without a cookie': {
      tokenSources: [{ header: 'X-Key', origins: ['https://a.test'] }],
    },
  }),
  ...of('issuers', openToAll, {
    'a preset that is open to all, with any value of the claim': { require: { [RESTRICTED]: '*' } },
  }),
  ...of('clients', client, {
    'a key without a kid': { secretSha256: undefined, jwks: { keys: [{ kty: 'EC' }] } },
  }),
  ...of('issuer-clients', ofIssuer, {
    'a scope without openid': { signIn: { name: 'a', scope: 'email' } },
  }),
  [
    'a relation that does not exist',
    'relation-model',
    model({ computedUserset: { relation: 'a' } }),
  ],
  ['another version', 'relation-model', { ...model({ this: {} }), schema_version: '1.2' }],
]

describe('the JSON Schemas', () => {
  test.each(GOOD)('accept %s, as the start does', (_what, name, value) => {
    expect(verdicts(name, value)).toEqual({ schema: true, start: true })
  })

  test.each(BAD)('refuse %s, as the start does', (_what, name, value) => {
    expect(verdicts(name, value)).toEqual({ schema: false, start: false })
  })

  test.each(AT_THE_START)('leave %s to the start', (_what, name, value) => {
    expect(verdicts(name, value)).toEqual({ schema: true, start: false })
  })

  test('accept the examples of the guide', () => {
    const guide = readFileSync(join(ROOT, 'docs/issuers.md'), 'utf8')
    const [first, second] = blocksOf(guide).filter(({ language }) => language === 'json')
    for (const [name, text] of [
      ['issuers', first?.text],
      ['clients', second?.text],
    ] as const)
      expect({ name, valid: VALIDATORS[name]?.(JSON.parse(text ?? '')) }).toEqual({
        name,
        valid: true,
      })
    const own = JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8'))
    expect(verdicts('relation-model', own)).toEqual({ schema: true, start: true })
  })

  test.each(Object.keys(STARTS))('describe every field of %s', (name) => {
    const missing: string[] = []
    const visit = (value: unknown, at: string): void => {
      if (typeof value !== 'object' || value === null) return
      const { properties, allOf: _, ...rest } = value as Record<string, unknown>
      for (const [field, schema] of Object.entries(properties ?? {})) {
        if (!(schema as { description?: string }).description) missing.push(`${at}.${field}`)
        visit(schema, `${at}.${field}`)
      }
      for (const [key, part] of Object.entries(rest))
        if (key !== 'default') visit(part, `${at}/${key}`)
    }
    visit(schemaOf(name), name)
    expect(missing).toEqual([])
  })
})
