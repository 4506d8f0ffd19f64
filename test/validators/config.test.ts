import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/features/environment.ts'
import {
  es256,
  good,
  mistakes,
  remote,
  rs256,
  secret,
  withIssuers,
  withKeys,
} from './environment.ts'

describe('the environment', () => {
  it('is parsed, with defaults', () => {
    expect(parseConfig(withIssuers(remote))).toEqual({
      redis: { url: good.UPSTASH_REDIS_REST_URL, token: good.UPSTASH_REDIS_REST_TOKEN },
      originUrl: 'https://origin.test',
      publicUrl: 'https://gateway.test',
      issuers: [
        {
          ...remote,
          algorithms: ['RS256', 'PS256', 'ES256', 'Ed25519', 'EdDSA'],
          typ: 'at+jwt',
          clockTolerance: 5,
          maxTokenAge: 86_400,
          rolesClaim: 'roles',
          tenantClaim: 'tenant',
        },
      ],
      signingKeys: undefined,
      clients: [],
      issuerClients: [],
      metricsAccess: 'operators',
      traces: undefined,
      auditAddresses: { form: 'full', key: '' },
      decisionPoints: { timeoutMs: 250, openfga: undefined, authzen: undefined },
    })
  })

  it('needs an origin: a URL or a service binding', () => {
    const { ORIGIN_URL: _, ...env } = good
    expect(mistakes(env)).toEqual(['ORIGIN_URL: is missing; set it, or bind a service as ORIGIN'])
    expect(mistakes({ ...env, ORIGIN: { fetch() {} } })).toEqual([])
    expect(mistakes({ ...env, ORIGIN: 'https://origin.test' })).toEqual([
      'ORIGIN: must be a service binding',
    ])
  })

  it('one error names every mistake [R31]', () => {
    expect(
      mistakes({
        ISSUERS: '[{"issuer":"a","nonsense":1}]',
        SIGNING_KEYS: '{',
        PUBLIC_URL: 'ftp://x',
        ORIGIN_URL: 'x',
      }),
    ).toEqual([
      'UPSTASH_REDIS_REST_URL: is missing',
      'UPSTASH_REDIS_REST_TOKEN: is missing',
      'ORIGIN_URL: must be an http or https URL',
      'PUBLIC_URL: must be an http or https URL',
      'ISSUERS[0].audience: is missing',
      'ISSUERS[0]: Unrecognized key: "nonsense"',
      'SIGNING_KEYS: must be valid JSON',
    ])
    for (const env of [undefined, null, 1, 'x', []]) expect(mistakes(env).length).toBeGreaterThan(0)
  })

  it.each([
    ["'[{}]'", 'must be valid JSON with double quotes, and none around it'],
    ['[{issuer:https://a.test}]', 'must be valid JSON with double quotes, and none around it'],
    ['[{"issuer":}]', 'must be valid JSON'],
  ])('the mistake of %s says whether its quotes are wrong [R31]', (ISSUERS, mistake) => {
    expect(mistakes({ ...good, ISSUERS })).toEqual([`ISSUERS: ${mistake}`])
  })

  it('names of issuers and audiences lose white space and a byte order mark around them', () => {
    const issuers = [{ ...remote, issuer: `${remote.issuer} `, audience: ['a\n', '\ufeffb'] }]
    const client = { issuer: `${remote.issuer}\r\n`, id: 'gateway', secret: ' kept ', signIn: {} }
    const json = (value: unknown) => `\ufeff${JSON.stringify(value)}\r\n`
    const env = { ...good, ISSUERS: json(issuers), ISSUER_CLIENTS: json([client]) }
    const { issuer } = remote
    expect(parseConfig(env)).toMatchObject({
      issuers: [{ issuer, audience: ['a', 'b'] }],
      issuerClients: [{ ...client, issuer }],
    })
    expect(mistakes(withIssuers({ ...remote, issuer: ' ' }))).toHaveLength(1)
  })

  it('hashed addresses need a real key [R31]', () => {
    const hashed = { ...good, AUDIT_ADDRESSES: 'hashed' }
    expect(mistakes({ ...good, AUDIT_ADDRESSES: 'none', AUDIT_ADDRESS_KEY: 'short' })).toEqual([
      'AUDIT_ADDRESSES: must be full, truncated or hashed',
      'AUDIT_ADDRESS_KEY: must have at least 32 characters',
      'AUDIT_ADDRESS_KEY: must be random, not a placeholder or a pattern',
    ])
    expect(mistakes(hashed)).toEqual([
      'AUDIT_ADDRESS_KEY: is missing; AUDIT_ADDRESSES=hashed requires it',
    ])
    expect(mistakes({ ...hashed, AUDIT_ADDRESS_KEY: 'a'.repeat(32) })).toEqual([
      'AUDIT_ADDRESS_KEY: must be random, not a placeholder or a pattern',
    ])
    expect(parseConfig({ ...hashed, AUDIT_ADDRESS_KEY: secret() }).auditAddresses).toEqual({
      form: 'hashed',
      key: secret(),
    })
  })

  it('JSON with a duplicate member is refused [R31]', () => {
    expect(mistakes({ ...good, ISSUERS: '[{"issuer":"a","issuer":"b"}]' })).toEqual([
      'ISSUERS: has a duplicate member name',
    ])
  })

  it('the REST token is required, and may have any form [R31]', () => {
    expect(mistakes({ ...good, UPSTASH_REDIS_REST_TOKEN: '' })).toHaveLength(1)
    expect(mistakes({ ...good, UPSTASH_REDIS_REST_TOKEN: undefined })).toHaveLength(1)
    expect(mistakes({ ...good, UPSTASH_REDIS_REST_TOKEN: 'local' })).toEqual([])
  })

  it('URLs have no credentials, and the public URL has no query', () => {
    expect(mistakes({ ...good, ORIGIN_URL: 'https://u:p@origin.test' })).toEqual([
      'ORIGIN_URL: must not contain credentials',
    ])
    expect(mistakes({ ...good, PUBLIC_URL: 'https://gateway.test/?x' })).toHaveLength(1)
    expect(mistakes({ ...good, PUBLIC_URL: 'https://gateway.test/#x' })).toHaveLength(1)
    expect(mistakes({ ...good, PUBLIC_URL: 'https://gateway.test/api' })).toHaveLength(1)
    for (const PUBLIC_URL of ['https://例え.test'])
      expect(mistakes({ ...good, PUBLIC_URL })).toEqual([
        'PUBLIC_URL: must be ASCII; write other names as xn-- or %XX',
      ])
  })

  it('the scheme of the public URL may be in upper case, and its host keeps its spelling in tokens and records', () => {
    for (const [PUBLIC_URL, publicUrl] of [
      ['HTTPS://gateway.test', 'https://gateway.test'],
      ['https://Gateway.TEST/', 'https://Gateway.TEST'],
      ['Https://gateway.test:443', 'https://gateway.test:443'],
    ] as const) {
      expect(parseConfig({ ...good, PUBLIC_URL }).publicUrl).toBe(publicUrl)
      const ISSUERS = JSON.stringify([{ issuer: 'https://gateway.test', audience: 'a' }])
      expect(mistakes({ ...good, PUBLIC_URL, ISSUERS }), PUBLIC_URL).toEqual([
        'ISSUERS[0]: is this gateway; requires jwks',
      ])
    }
    expect(mistakes({ ...good, PUBLIC_URL: 'https://gateway.test/.' })).toHaveLength(1)
    const spelled = JSON.stringify([{ issuer: 'HTTPS://Gateway.test', audience: 'a' }])
    expect(mistakes({ ...good, PUBLIC_URL: 'https://gateway.test', ISSUERS: spelled })).toEqual([
      'ISSUERS[0]: is this gateway; requires jwks',
    ])
  })

  it('a client needs an algorithm of one of the signing keys', () => {
    const withClients = (env: object, ...algorithms: (string | undefined)[]) => ({
      ...env,
      CLIENTS: JSON.stringify(
        algorithms.map((tokenAlgorithm) => ({
          id: crypto.randomUUID(),
          grants: ['client_credentials'],
          tokenAlgorithm,
          secretSha256: 'A'.repeat(43),
        })),
      ),
    })
    const keys = withKeys({ ...es256.privateJwk, kid: 'a' }, { ...rs256.privateJwk, kid: 'b' })
    expect(mistakes(withClients(keys, 'ES256', undefined, 'RS256'))).toEqual([])
    expect(mistakes(withClients(keys, 'EdDSA', 'ES256', 'EdDSA'))).toEqual([
      'CLIENTS[0].tokenAlgorithm: must be the algorithm of a key in SIGNING_KEYS',
      'CLIENTS[2].tokenAlgorithm: must be the algorithm of a key in SIGNING_KEYS',
    ])
    expect(mistakes(withClients(good, undefined))).toEqual([])
    expect(mistakes(withClients(good, 'ES256'))).toHaveLength(1)
  })

  it('a client with a profile needs keys: it could never authenticate by a secret, or without one', () => {
    const withClient = (described: object) => ({
      ...withKeys({ ...es256.privateJwk, kid: 'a' }),
      CLIENTS: JSON.stringify([
        { id: crypto.randomUUID(), grants: ['client_credentials'], profile: 'fapi2', ...described },
      ]),
    })
    const { kty, crv, x, y } = es256.publicJwk
    const jwks = { keys: [{ kty, crv, x, y, kid: 'a', alg: 'ES256' }] }
    expect(mistakes(withClient({ jwks }))).toEqual([])
    const mistake =
      'CLIENTS[0].profile: fapi2 needs jwks: its clients authenticate by private_key_jwt'
    expect(mistakes(withClient({ secretSha256: 'A'.repeat(43) }))).toEqual([mistake])
    expect(mistakes(withClient({ public: true }))).toEqual([mistake])
  })

  it('no error contains the value of a secret [S16, S47, R31]', () => {
    const value = 'c2VjcmV0LXZhbHVlLW5vYm9keS1tYXktc2Vl'
    const weak = { ...es256.privateJwk, kid: '', d: value, x: value }
    const errors = [
      {
        ...good,
        UPSTASH_REDIS_REST_TOKEN: `changeme ${value}`,
        ORIGIN_URL: `https://u:${value}@x.test`,
      },
      { ...withKeys(weak, { kty: 'oct', k: value }, value), UPSTASH_REDIS_REST_URL: value },
      { ...good, SIGNING_KEYS: `{"keys":[${value}` },
      withIssuers({
        ...remote,
        jwksUri: undefined,
        algorithms: ['HS256'],
        jwks: { keys: [{ kty: 'oct', k: value }] },
      }),
    ].map((env) => mistakes(env).join('\n'))
    for (const error of errors) {
      expect(error).not.toBe('')
      expect(error).not.toContain(value)
    }
  })
})

describe('verification by the issuer', () => {
  const entry = { issuer: 'https://a.example.com', audience: 'api' }
  const client = { issuer: entry.issuer, id: 'gateway', secret: secret() }
  const environment = (issuers: readonly object[], clients?: readonly object[]) => ({
    ...withIssuers(...issuers),
    ...(clients && { ISSUER_CLIENTS: JSON.stringify(clients) }),
  })

  it.each<[string, readonly object[], readonly object[] | undefined, RegExp]>([
    ['no client', [{ ...entry, introspection: {} }], undefined, /introspection: requires a client/],
    ['a client of another issuer', [entry], [client], /must be an issuer with introspection/],
    [
      'userinfo without "any"',
      [{ ...entry, userinfo: {} }],
      undefined,
      /userinfo.audience: must be/,
    ],
    [
      'an endpoint in clear text',
      [{ ...entry, introspection: { endpoint: 'http://a.example.com/i' } }],
      [client],
      /endpoint: must be https/,
    ],
    [
      'both calls',
      [{ ...entry, introspection: {}, userinfo: { audience: 'any' } }],
      [client],
      /has both introspection and userinfo/,
    ],
    [
      'two issuers for one opaque token',
      [
        { ...entry, userinfo: { audience: 'any', tokenPrefix: 'a' } },
        { ...entry, issuer: 'https://b.example.com', userinfo: { audience: 'any' } },
      ],
      undefined,
      /must distinguish the opaque tokens/,
    ],
  ])('%s is a mistake, which does not contain the secret', (_, issuers, clients, message) => {
    const found = mistakes(environment(issuers, clients)).join('\n')
    expect(found).toMatch(message)
    expect(found).not.toContain(client.secret)
  })
})
