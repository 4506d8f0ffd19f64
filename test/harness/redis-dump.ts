/** Checks all keys and values of a Redis for undocumented content. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { LANE } from './lanes.ts'
import { ROOT } from './process.ts'

/** Patterns of credentials that no key or value may contain. */
const CREDENTIALS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['a JWT', /eyJ[\w-]{8,}\.eyJ[\w-]+\.[\w-]+/],
  ['an API key', /\bpk_[A-Za-z0-9]{30,}/],
  ['a client secret', /\bpcs_[\w-]{30,}/],
  ['a session', /\bpcb_[\w-]{30,}/],
  ['a refresh token', /(?<![\w-])[\w-]{22}\.[\w-]{43}(?![\w-])/],
  ['a private key', /"d"\s*:\s*"[\w-]{20,}"/],
]

/** Returns every violation of docs/storage-schema.md in `redis`. */
export async function complaintsAbout(redis: Redis): Promise<string[]> {
  const lasting = lastingKeys()
  const complaints: string[] = []
  let keys = 0
  for await (const batch of redis.scanStream({ count: 500 })) {
    for (const key of batch as string[]) {
      keys++
      const ttl = await redis.ttl(key)
      if (ttl === -1 && !lasting.some((pattern) => pattern.test(key)))
        complaints.push(`${key} has no TTL`)
      const text = `${key} ${await contentOf(redis, key)}`
      for (const [what, pattern] of CREDENTIALS)
        if (pattern.test(text)) complaints.push(`${key} holds ${what}`)
    }
  }
  if (keys === 0) complaints.push('Redis is empty, so the check proves nothing')
  return complaints
}

/**
 * Returns patterns of the keys that the document lists without a TTL. Callers without a tenant have
 * an empty one.
 */
function lastingKeys(): RegExp[] {
  const document = readFileSync(join(ROOT, 'docs/storage-schema.md'), 'utf8')
  const rows = document.split('\n').filter((line) => line.startsWith('| `pc:'))
  return rows
    .map((row) => row.split('|'))
    .filter(([, , , ttl = '']) => /\bnone\b/.test(ttl))
    .flatMap(([, key = '']) => [...key.matchAll(/`(pc:[^`]+)`/g)].map(([, name = '']) => name))
    .map((name) => name.replaceAll('<tenant>', '.*').replaceAll(/<\w+>/g, '.+'))
    .map((pattern) => new RegExp(`^${pattern.replace(/^pc:/, LANE)}$`))
}

async function contentOf(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'hash':
      return JSON.stringify(await redis.hgetall(key))
    case 'zset':
      return JSON.stringify(await redis.zrange(key, 0, -1))
    case 'set':
      return JSON.stringify(await redis.smembers(key))
    case 'list':
      return JSON.stringify(await redis.lrange(key, 0, -1))
    case 'stream':
      return JSON.stringify(await redis.xrange(key, '-', '+'))
    default:
      return (await redis.get(key)) ?? ''
  }
}
