/**
 * Documentation, manifests and declarations of installed packages, as samples of programmers'
 * texts.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const MODULES = resolve(import.meta.dirname, '../../../node_modules')
/** Pinned versions, equal on every platform, by different authors. */
const PACKAGES: readonly string[] = [
  ...['@cloudflare/workers-types', '@types/node', '@upstash/ratelimit', '@upstash/redis'],
  ...['autocannon', 'commander', 'hono', 'ioredis', 'ipaddr.js', 'jose', 'lru-cache'],
  ...['oauth4webapi', 'openid-client', 'tsx', 'undici', 'uuid', 'vitest', 'wrangler', 'zod'],
]
const MAX_FILE_CHARS = 300_000

function textsOf(pattern: RegExp): string[] {
  return PACKAGES.flatMap((name) =>
    readdirSync(join(MODULES, name), { recursive: true, encoding: 'utf8' })
      .filter((path) => pattern.test(path) && !path.includes('node_modules'))
      .sort()
      .map((path) => readFileSync(join(MODULES, name, path), 'utf8')),
  ).filter((text) => text.length <= MAX_FILE_CHARS)
}

const unique = (texts: readonly string[]) => [...new Set(texts)]
const linesOf = (texts: readonly string[]) =>
  unique(texts.flatMap((text) => text.split('\n').map((line) => line.trim()))).filter(
    (line) => line.length > 3,
  )

/** Returns the names and strings of a JSON text. */
function stringsIn(text: string): string[] {
  const strings: string[] = []
  JSON.parse(text, (name, value) => {
    strings.push(name)
    if (typeof value === 'string') strings.push(value)
    return value
  })
  return strings
}

const documents = textsOf(/\.md$/i)
const declarations = textsOf(/\.d\.[cm]?ts$/)

/** Texts by kind, without duplicates. */
export const PROGRAMMING: Readonly<Record<string, readonly string[]>> = {
  'documents, whole': unique(documents),
  'documents, line by line': linesOf(
    documents.map((document) => document.replace(/```[\s\S]*?```/g, '')),
  ),
  'code in documents, line by line': linesOf(
    documents.flatMap((document) => document.match(/```[\s\S]*?```/g) ?? []),
  ),
  'declarations of TypeScript, whole': unique(declarations),
  'declarations of TypeScript, line by line': linesOf(declarations),
  licences: unique(textsOf(/(?:^|\/)licen[cs]e[^/]*$/i)),
  'strings in package.json': unique(textsOf(/^package\.json$/).flatMap(stringsIn)),
}
