/** The gateway and the client credentials that a command uses. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { usage } from './failure.ts'
import { projectAround } from './project.ts'

export const DEFAULT_URL = 'http://127.0.0.1:8787'
const FIRST_OPERATOR = '`portcullis clients hash-secret` creates the client of an operator'
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/

export interface Connection {
  /** Origin of the gateway, without a path or trailing slash. */
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
}

export interface ConnectionOptions {
  readonly url?: string
  readonly clientId?: string
}

/**
 * Returns the connection settings. Options override environment variables. These override the
 * `.dev.vars` of the project around `cwd`, which is read only for a gateway on this machine. A
 * secret from `.dev.vars` is used only with the client id from the same file. Throws a usage
 * {@link Failure} for missing settings, and for plain http to another machine, which would expose
 * the secret.
 */
export function readConnection(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Connection {
  const url = originOf(options.url ?? (env.PORTCULLIS_URL || DEFAULT_URL))
  const local = LOOPBACK.test(url.hostname)
  if (!local && url.protocol !== 'https:') {
    throw usage(`${url.origin}: must be https, because the client's secret is sent there`)
  }
  const kept = local ? devVarsAround(cwd) : {}
  const clientId = options.clientId ?? (env.PORTCULLIS_CLIENT_ID || kept.PORTCULLIS_CLIENT_ID)
  if (!clientId) throw usage(`PORTCULLIS_CLIENT_ID is not set; ${FIRST_OPERATOR}`)
  const keptSecret =
    clientId === kept.PORTCULLIS_CLIENT_ID ? kept.PORTCULLIS_CLIENT_SECRET : undefined
  const clientSecret = env.PORTCULLIS_CLIENT_SECRET || keptSecret
  if (!clientSecret) throw usage(`PORTCULLIS_CLIENT_SECRET is not set; ${FIRST_OPERATOR}`)
  return { url: url.origin, clientId, clientSecret }
}

function originOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw usage(`the URL of the gateway must be an http or https URL, such as ${DEFAULT_URL}`)
  }
  if (url.href !== `${url.origin}/`) {
    throw usage('the URL of the gateway must have no credentials, path, query or fragment')
  }
  return url
}

/**
 * Reads the `.dev.vars` of the project that contains `folder`. Returns an empty object outside a
 * project.
 */
export function devVarsAround(folder: string): NodeJS.Dict<string> {
  const root = projectAround(folder)
  if (root === undefined) return {}
  const file = join(root, '.dev.vars')
  return existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}
}
