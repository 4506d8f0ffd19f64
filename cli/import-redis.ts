/** Moves a standalone Redis to a cluster for `portcullis redis import`. Loaded only by that command. */
import { createHash } from 'node:crypto'
import { Misconfigured, Unavailable } from '../src/errors.ts'
import { redisNodeSettings } from '../src/runtimes/node/environment/redis-environment.ts'
import { parseRedisUrl, type RedisTarget } from '../src/runtimes/node/environment/redis-url.ts'
import {
  type Import,
  importKeys,
  type Pass,
} from '../src/runtimes/node/redis/import/import-keys.ts'
import { connectResp, type RespClient } from '../src/runtimes/node/redis/resp.ts'
import { refused, undecided, usage } from './failure.ts'
import { createOutput } from './output.ts'
import { createProgress } from './progress.ts'
import { counted, table } from './text.ts'

export interface ImportRedisOptions {
  readonly from?: string
  readonly final: boolean
  readonly dryRun: boolean
  readonly merge: boolean
  readonly json: boolean
  readonly env: NodeJS.ProcessEnv
}

/** A call copies some hundreds of keys. */
const CALL_TIMEOUT_MS = 5_000
const COLUMNS = ['kind', 'seen', 'copied']
const REFUSALS = {
  other_origin:
    'the cluster has keys of another origin; use an empty cluster or another REDIS_PREFIX, or keep them with --merge',
  ended:
    'the import has ended, and gateways may have written to the cluster since; --merge would replace what both have',
} as const

/** Runs the import. Throws a `Failure` if it is refused, or not complete. */
export async function importRedis(options: ImportRedisOptions): Promise<void> {
  const { env, final: isFinal, dryRun: isDry, merge: merges, json } = options
  const source = sourceOf(options)
  const target = targetOf(env)
  const keyPrefix = env.REDIS_PREFIX || undefined
  if (keyPrefix !== undefined && /[{}\s]/.test(keyPrefix))
    throw usage('REDIS_PREFIX: must contain neither braces nor spaces')
  const output = createOutput(json)
  const progress = createProgress(!json)
  const from = connectResp({ url: source.url, keyPrefix })
  const to = connectResp({ url: target, keyPrefix, ...redisNodeSettings(env) })
  try {
    await checked(from, source.name)
    for (const warning of await checked(to, 'REDIS_URL')) output.remark(warning)
    const { lanes, ...cluster } = to.connect({ timeoutMs: CALL_TIMEOUT_MS })
    if (lanes === undefined) throw usage(NO_CLUSTER)
    const done = await importKeys({
      source: from.connect({ timeoutMs: CALL_TIMEOUT_MS }),
      cluster: { ...cluster, lanes },
      origin: originOf(source.target, keyPrefix),
      ...{ isFinal, isDry, merges },
      now: () => Date.now(),
      onPass: (number) => progress.begin(`pass ${number}`),
      onProgress: ({ seen, copied }) => progress.update(`${seen} keys seen, ${copied} copied`),
    })
    progress.end()
    report(done, options)
  } catch (error) {
    progress.end()
    if (!(error instanceof Unavailable)) throw error
    const detail =
      'the standalone Redis or the cluster did not answer, or refused a command; the import can be repeated'
    throw undecided('redis_unavailable', detail)
  } finally {
    from.close()
    to.close()
  }
}

const NO_CLUSTER = 'REDIS_URL: must be the cluster, such as redis+cluster://host:port/?lanes=64'

function sourceOf({ from, env }: ImportRedisOptions) {
  const name = from === undefined ? 'REDIS_URL_FROM' : '--from'
  const url = from ?? env.REDIS_URL_FROM
  if (!url) throw usage('REDIS_URL_FROM: is not set; set it to the URL of the standalone Redis')
  const target = parseRedisUrl(url)
  if (target === undefined || target.lanes !== undefined)
    throw usage(`${name}: must be redis://host:port, rediss://host:port or redis+sentinel://…`)
  const { password, sentinelLogin } = target
  if (from !== undefined && (password ?? sentinelLogin.password) !== undefined)
    throw usage('--from must not contain a password, which other users see; set REDIS_URL_FROM')
  return { name, url, target }
}

function targetOf({ REDIS_URL }: NodeJS.ProcessEnv): string {
  if (!REDIS_URL) throw usage('REDIS_URL: is not set; set it to the URL of the cluster')
  if (parseRedisUrl(REDIS_URL)?.lanes === undefined) throw usage(NO_CLUSTER)
  return REDIS_URL
}

/** Identifies the source without its login. */
function originOf({ servers, master, database }: RedisTarget, prefix = ''): string {
  const text = JSON.stringify([servers, master ?? null, database, prefix])
  return createHash('sha256').update(text).digest('base64url')
}

/** Checks a server as the start of a gateway does. */
async function checked(client: RespClient, name: string): Promise<readonly string[]> {
  try {
    return await client.check()
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    const text = error.mistakes.join('; ').replaceAll('REDIS_URL', name)
    throw refused('misconfigured', text)
  }
}

function report(done: Import, { final: isFinal, dryRun, json }: ImportRedisOptions): void {
  if (done.outcome === 'refused') throw refused(done.why, REFUSALS[done.why])
  const { passes, outcome } = done
  const output = createOutput(json)
  const rows = rowsOf(passes)
  const last = passes.at(-1)
  const { skipped = 0, unknown = 0, left = 0, seen = 0 } = last ?? {}
  const sum = (of: 'copied' | 'removed') => passes.reduce((all, pass) => all + pass[of], 0)
  const totals = { passes: passes.length, seen, copied: sum('copied'), removed: sum('removed') }
  const isSettled = last !== undefined && last.copied + last.removed === 0
  output.result(
    { outcome, isDryRun: dryRun, isSettled, ...totals, skipped, unknown, left, kinds: rows },
    table(rows, COLUMNS, output.style),
  )
  const written = dryRun ? ' (nothing was written)' : ''
  const { copied, removed } = totals
  output.remark(`Passes: ${passes.length}, copied: ${copied}, removed: ${removed}${written}`)
  if (unknown > 0) output.remark(`${counted(unknown, 'key')} of no known kind: not copied.`)
  if (outcome === 'changing')
    throw refused(
      'source_changes',
      'the standalone still changes: stop all gateways on it, and repeat --final',
    )
  if (outcome === 'pending')
    throw undecided('incomplete', 'some lanes do not have all revocations yet; repeat --final')
  if (!isFinal && !dryRun)
    output.remark(
      `Next: stop the gateways, and import the rest (${counted(left, 'key')}) with --final.`,
    )
  if (isFinal && !dryRun) output.remark('The import has ended. Start the gateways on the cluster.')
}

function rowsOf(passes: readonly Pass[]) {
  const copied = new Map<string, number>()
  for (const { kinds } of passes)
    for (const [kind, of] of kinds) copied.set(kind, (copied.get(kind) ?? 0) + of.copied)
  const seen = passes.at(-1)?.kinds ?? new Map()
  return [...copied]
    .sort()
    .map(([kind, of]) => ({ kind, seen: seen.get(kind)?.seen ?? 0, copied: of }))
}
