/** Which Redis the environment names, on each runtime. */
import { describe, expect, it } from 'vitest'
import { EVERY_FEATURE, parseConfig } from '../../../src/features/environment.ts'
import { nodeEnvironment } from '../../../src/runtimes/node/environment/node-environment.ts'
import { parseRedisUrl } from '../../../src/runtimes/node/environment/redis-url.ts'
import { good, mistakes } from '../../validators/environment.ts'

const { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN, ...others } = good
const withRedis = (REDIS_URL: string) => ({ ...others, REDIS_URL })
const onNode = (env: object) => mistakes(env, nodeEnvironment(env))

describe('Redis on Workers', () => {
  it('is over REST: REDIS_URL is refused', () => {
    expect(mistakes({ ...good, REDIS_URL: 'redis://127.0.0.1:6379' })).toEqual([
      'REDIS_URL: works on Node only; set UPSTASH_REDIS_REST_URL',
    ])
    expect(mistakes(others)).toEqual([
      'UPSTASH_REDIS_REST_URL: is missing',
      'UPSTASH_REDIS_REST_TOKEN: is missing',
    ])
  })
})

describe('Redis on Node', () => {
  it('is the one at REDIS_URL, or over REST', () => {
    const url = 'redis://:secret@127.0.0.1:6379/2'
    const env = { ...withRedis(url), REDIS_PREFIX: 'x:' }
    expect(parseConfig(env, nodeEnvironment(env)).redis).toEqual({
      url,
      token: '',
      keyPrefix: 'x:',
    })
    expect(parseConfig(good, nodeEnvironment(good)).redis).toEqual({
      url: UPSTASH_REDIS_REST_URL,
      token: UPSTASH_REDIS_REST_TOKEN,
    })
  })

  it('none, half of one and two are mistakes, reported with all others [R31]', () => {
    expect(onNode({ ...others, ORIGIN_URL: 'x' })).toEqual([
      'REDIS_URL: is missing; set it, or UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN',
      'ORIGIN_URL: must be an http or https URL',
    ])
    expect(onNode({ ...others, UPSTASH_REDIS_REST_URL })).toEqual([
      'UPSTASH_REDIS_REST_TOKEN: is missing',
    ])
    expect(onNode({ ...others, UPSTASH_REDIS_REST_TOKEN })).toEqual([
      'UPSTASH_REDIS_REST_URL: is missing',
    ])
    expect(onNode({ ...good, REDIS_URL: 'redis://127.0.0.1' })).toEqual([
      'UPSTASH_REDIS_REST_URL: must not be set together with REDIS_URL; remove one of them',
      'UPSTASH_REDIS_REST_TOKEN: must not be set together with REDIS_URL; remove one of them',
    ])
  })

  const VALUES = [
    '',
    'x',
    '-1',
    '[]',
    '{}',
    '[{}]',
    '[{"issuer":"","audience":"","id":""}]',
    '{"keys":[]}',
    '{"keys":[{"nbf":0.5}]}',
  ] as const
  const variables = Object.keys(nodeEnvironment({}, EVERY_FEATURE)._zod.def.shape)
  it.each(variables.filter((name) => !name.startsWith('ORIGIN')))(
    'no value of %s hides what is missing',
    (name) => {
      for (const value of VALUES) {
        const env: Record<string, string> = { AUDIT_ADDRESSES: 'hashed', [name]: value }
        const all = mistakes(env, nodeEnvironment(env, EVERY_FEATURE))
        expect(all, value).toContain('ORIGIN_URL: is missing; set it, or bind a service as ORIGIN')
        if (!name.startsWith('AUDIT_ADDRESS'))
          expect(all, value).toContain(
            'AUDIT_ADDRESS_KEY: is missing; AUDIT_ADDRESSES=hashed requires it',
          )
        expect(new Set(all).size, value).toBe(all.length)
      }
    },
  )

  it.each([
    '',
    'redis',
    'http://127.0.0.1:6379',
    'redis://',
    'redis://host:port',
    'redis://host:65536',
    'redis://host/x',
    'redis://host/0/1',
    'redis://host?db=1',
    'redis://hidden@host',
    'redis://:hidden%@host',
    'redis://a,b',
    'redis+sentinel://a,b',
    'redis+sentinel://a,b/',
    'redis+sentinel://a,/main',
    'redis+sentinel://a/main?password=hidden',
    'unix:///run/redis.sock',
  ])('the URL %s is a mistake, and its message does not contain it [S16]', (url) => {
    const [mistake, ...more] = onNode(withRedis(url))
    expect(more).toEqual([])
    expect(mistake).toMatch(/^REDIS_URL: must be redis:\/\/host:port, /)
    expect(mistake).not.toContain('hidden')
  })

  it('a URL names servers, a login, a database and TLS', () => {
    const sentinelLogin = { username: undefined, password: undefined }
    const plain = { master: undefined, tls: false, database: 0, sentinelLogin }
    const anonymous = { username: undefined, password: undefined }
    expect(parseRedisUrl('redis://host')).toEqual({
      ...plain,
      ...anonymous,
      servers: [{ host: 'host', port: 6379 }],
    })
    expect(parseRedisUrl('rediss://me:p%40%3Ass@[::1]:7000/12')).toEqual({
      ...plain,
      servers: [{ host: '::1', port: 7000 }],
      username: 'me',
      password: 'p@:ss',
      tls: true,
      database: 12,
    })
    expect(
      parseRedisUrl('redis+sentinel://:word@a,b:7/main/3?sentinelUsername=u&sentinelPassword=p%26'),
    ).toEqual({
      ...plain,
      servers: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 7 },
      ],
      master: 'main',
      username: undefined,
      password: 'word',
      database: 3,
      sentinelLogin: { username: 'u', password: 'p&' },
    })
  })

  it('a URL names nodes of a cluster, and its number of lanes', () => {
    const nodes = [
      { host: 'a', port: 6379 },
      { host: '::1', port: 7000 },
    ]
    expect(parseRedisUrl('rediss+cluster://me:p%2Fw@a,[::1]:7000/?lanes=1024')).toMatchObject({
      servers: nodes,
      username: 'me',
      password: 'p/w',
      tls: true,
      lanes: 1024,
    })
    for (const url of ['redis+cluster://a', 'redis+cluster://a/', 'redis+cluster://a?lanes=64'])
      expect(parseRedisUrl(url)).toMatchObject({ tls: false, lanes: 64 })
  })

  it('the scheme of a URL may be in upper case, and keeps its meaning', () => {
    for (const url of ['rediss://a', 'rediss+sentinel://a/main', 'rediss+cluster://a']) {
      const upper = url.replace(/^[^:]+/, (scheme) => scheme.toUpperCase())
      expect(parseRedisUrl(upper)).toEqual(parseRedisUrl(url))
      expect(parseRedisUrl(upper)).toMatchObject({ tls: true })
    }
  })

  it.each([
    ['redis+cluster://a/1', /has no database number/],
    ['redis+cluster://a/?lanes=0', /lanes must be one whole number from 1 to 1024/],
    ['redis+cluster://a/?lanes=1025', /lanes must be one whole number from 1 to 1024/],
    ['redis+cluster://a/?lanes=1&lanes=2', /lanes must be one whole number/],
    ['redis+cluster://a/?lanes=', /lanes must be one whole number/],
    ['redis+cluster://a/?lane=64', /has only the parameters lanes and credentials/],
    ['redis+cluster://a/?credentials=c', /credentials must be lanes or control/],
    ['redis+cluster://', /must be redis:/],
    ['redis+cluster://a:port', /must be redis:/],
    ['redis+cluster://:hidden%@a', /must be redis:/],
  ])('%s is a mistake with its reason', (url, reason) => {
    const [mistake, ...more] = onNode(withRedis(url))
    expect(more).toEqual([])
    expect(mistake).toMatch(reason)
    expect(mistake).not.toContain('hidden')
  })

  it.each(['399', '60001', '1s', ''])('REDIS_FENCE_MS=%s is a mistake', (fence) => {
    expect(onNode({ ...withRedis('redis://a'), REDIS_FENCE_MS: fence })).toEqual([
      'REDIS_FENCE_MS: must be a whole number from 400 to 60000',
    ])
  })
})
