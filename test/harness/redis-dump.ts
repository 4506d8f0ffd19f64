/** Looks through everything that a Redis holds, for what should not be there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { ROOT } from './process.ts'

/** What opens something: none of it may stand in a key or a value. */
const CREDENTIALS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['a JWT', /eyJ[\w-]{8,}\.eyJ[\w-]+\.[\w-]+/],
  ['an API key', /\bpk_[A-Za-z0-9]{30,}/],
  ['a client secret', /\bpcs_[\w-]{30,}/],
  ['a refresh token', /(?<![\w-])[\w-]{22}\.[\w-]{43}(?![\w-])/],
  ['a private key', /"d"\s*:\s*"[\w-]{20,}"/],
]

/** Everything about `redis` that breaks a promise of docs/storage-schema.md; empty if nothing does. */
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
  if (keys === 0) complaints.push('there is nothing in it to look at')
  return complaints
}

/** Keys that the document says have no TTL, as patterns. Callers without a tenant have an empty one. */
function lastingKeys(): RegExp[] {
  const document = readFileSync(join(ROOT, 'docs/storage-schema.md'), 'utf8')
  const rows = document.split('\n').filter((line) => line.startsWith('| `pc:'))
  return rows
    .map((row) => row.split('|'))
    .filter(([, , , ttl = '']) => /\bnone\b/.test(ttl))
    .flatMap(([, key = '']) => [...key.matchAll(/`(pc:[^`]+)`/g)].map(([, name = '']) => name))
    .map((name) => name.replaceAll('<tenant>', '.*').replaceAll(/<\w+>/g, '.+'))
    .map((pattern) => new RegExp(`^${pattern}$`))
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
    default:
      return (await redis.get(key)) ?? ''
  }
}
