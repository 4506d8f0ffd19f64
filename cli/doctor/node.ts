/** Checks the environment of `portcullis serve`, and what a gateway on Node depends on. */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EVERY_FEATURE } from '../../src/features/environment.ts'
import { auditPlaces, sqlitePath } from '../../src/runtimes/node/environment/audit-environment.ts'
import { nodeEnvironment } from '../../src/runtimes/node/environment/node-environment.ts'
import { redisNodeSettings } from '../../src/runtimes/node/environment/redis-environment.ts'
import { serverSettings } from '../../src/runtimes/node/environment/server-environment.ts'
import { type Values, valuesIn } from '../deploy/values.ts'
import { checkEnvironment, isLocal } from './environment.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { checkRedis } from './redis.ts'
import { TIMEOUT_MS } from './request.ts'
import type { RespTarget } from './resp.ts'
import { checkSignIn } from './sign-in.ts'
import { checkKeySets, checkOrigin } from './upstreams.ts'

const INVALID = 'Correct the variables first.'
const AUDIT = 'audit trail'
const PROXIES = 'trusted proxies'

/** Returns the variables of `portcullis serve` in a file and in the environment, which overrides it. */
export function nodeValues(named: string | undefined, env: NodeJS.ProcessEnv): Values {
  const all = allNodeValues(named, env)
  const { shape } = nodeEnvironment(all, EVERY_FEATURE)
  return Object.fromEntries(Object.entries(all).filter(([name]) => name in shape)) as Values
}

/** The same with the variables of features and of other programs. */
export const allNodeValues = (named: string | undefined, env: NodeJS.ProcessEnv): Values =>
  Object.fromEntries(
    Object.entries({ ...(named !== undefined && valuesIn(named)), ...withoutEmpty(env) }).flatMap(
      ([name, value]) => (value === undefined ? [] : [[name, value]]),
    ),
  )

/** The variables that a gateway on Node has without features of the user. */
export const NODE_VARIABLES: Readonly<Record<string, unknown>> = nodeEnvironment(
  {},
  EVERY_FEATURE,
).shape

const withoutEmpty = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))

/** Checks all variables, and with them what the gateway depends on. Writes what `storeFindings` writes. */
export async function checkNode(
  values: Values,
  nowMs: number,
  issuersOfPolicy?: string,
): Promise<readonly Finding[]> {
  const { findings, config } = checkEnvironment(
    values,
    false,
    nowMs,
    nodeEnvironment(values, EVERY_FEATURE),
    issuersOfPolicy,
  )
  if (config === undefined) {
    const names = 'redis, key sets, origin and audit trail'
    return [...findings, notChecked(names, 'there are mistakes in the variables', INVALID)]
  }
  const { url, token, keyPrefix: prefix = 'pc:', timeoutMs } = config.redis
  const store = { url, prefix, timeoutMs }
  const others = await Promise.all([
    values.REDIS_URL === undefined
      ? checkRedis({ ...store, token })
      : overResp({ ...store, ...redisNodeSettings(values) }),
    checkKeySets(config),
    checkSignIn(config),
    checkOrigin(config.originUrl),
    auditFindings(values),
  ])
  return [...findings, ...others.flat(), proxiesFinding(values)]
}

async function auditFindings(values: Values): Promise<readonly Finding[]> {
  const { hasQueue, database, spool } = auditPlaces(values)
  if (!hasQueue) {
    const remedy = 'Set AUDIT_DATABASE, or AUDIT_STREAM if another gateway stores the events.'
    return [warning(AUDIT, 'events go to the log only', remedy)]
  }
  return [
    database === undefined
      ? ok(AUDIT, 'events go to the stream of Redis; another gateway must store them')
      : await databaseFinding(database),
    spool === undefined
      ? warning('audit spool', 'while Redis fails, events wait in memory', 'Set AUDIT_SPOOL.')
      : await folderFinding('audit spool', spool.directory),
  ]
}

async function databaseFinding(database: string): Promise<Finding> {
  const file = sqlitePath(database)
  if (file === undefined) return postgresFinding(database)
  const isMissing = await stat(file).then(
    () => false,
    () => true,
  )
  if (!isMissing && !(await isWritable(file)))
    return mistake(AUDIT, `${file} is not writable`, 'Give the user of the gateway access to it.')
  return folderFinding(AUDIT, dirname(file))
}

/** Checks a folder, or the one in which the gateway creates it. */
async function folderFinding(check: string, folder: string): Promise<Finding> {
  for (const place of [folder, dirname(folder)]) {
    const found = await stat(place).catch(() => undefined)
    if (found === undefined) continue
    if (found.isDirectory() && (await isWritable(place))) return ok(check, `${place} is writable`)
    return mistake(
      check,
      `${place} is not a writable folder`,
      'Give the user of the gateway access to it.',
    )
  }
  return mistake(
    check,
    `there is no folder ${folder}`,
    'Create it, writable for the user of the gateway.',
  )
}

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

/** The client for RESP is a package that only gateways on Node need. */
async function overResp(store: RespTarget): Promise<readonly Finding[]> {
  const { checkResp } = await import('./resp.ts')
  return checkResp(store)
}

async function postgresFinding(connectionString: string): Promise<Finding> {
  const { host } = new URL(connectionString)
  try {
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: TIMEOUT_MS })
    try {
      await client.connect()
      const { rows } = await client.query<{ server_version: string }>('SHOW server_version')
      return ok(AUDIT, `PostgreSQL ${rows[0]?.server_version} at ${host}`)
    } finally {
      await client.end().catch(() => {})
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_MODULE_NOT_FOUND')
      return mistake(AUDIT, 'the package pg is missing', 'Install it with `npm install pg`.')
    return mistake(AUDIT, `${host}: ${message}`, 'Start PostgreSQL, or correct AUDIT_DATABASE.')
  }
}

function proxiesFinding(values: Values): Finding {
  const {
    HOST = '127.0.0.1',
    TRUSTED_PROXIES,
    PROXY_HEADER = 'x-forwarded-for',
    PROXY_TARGET_HEADERS = [],
    PROXY_COUNTRY_HEADER,
    PROXY_CITY_HEADER,
  } = serverSettings(values)
  if (TRUSTED_PROXIES !== undefined) {
    const places = [PROXY_COUNTRY_HEADER, PROXY_CITY_HEADER].filter((name) => name !== undefined)
    const names = [...new Set([PROXY_HEADER, ...PROXY_TARGET_HEADERS, ...places])].join(', ')
    return ok(PROXIES, `${names} is read from ${TRUSTED_PROXIES.length} networks`)
  }
  const seen = 'none: all clients have the address of their connection'
  return isLocal(`http://${HOST.includes(':') ? `[${HOST}]` : HOST}`)
    ? warning(
        PROXIES,
        `${seen}, which is this machine`,
        'Behind a proxy, set TRUSTED_PROXIES to its network; otherwise all clients share one limit by address.',
      )
    : ok(PROXIES, seen)
}
