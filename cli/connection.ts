/** The gateway and the client credentials that a command uses. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { usage } from './failure.ts'
import { loginFor } from './login/store.ts'
import { projectAround } from './project.ts'
import { readVariables } from './text-file.ts'

const DEFAULT_PORT = 8787
export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`
const MAX_PORT = 65_535
const FIRST_OPERATOR = '`portcullis clients hash-secret` creates the client of an operator'
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/

interface ConnectionOfClient {
  /** Origin of the gateway, without a path or trailing slash. */
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
}

/** A person has logged in, see `login/store.ts`. */
interface ConnectionOfPerson {
  readonly url: string
  /** The client of the command line at the issuer. */
  readonly clientId: string
  readonly login: true
}

export type Connection = ConnectionOfClient | ConnectionOfPerson

export interface ConnectionOptions {
  readonly url?: string
  readonly clientId?: string
}

/**
 * Returns the connection settings. Options override environment variables. These override the
 * `.dev.vars` of the project around `cwd`, which is read only for a gateway on this machine. Without a client in options and environment, the login of a person is used if there is one. A secret from `.dev.vars` is used only with the client id from the same file. Throws a usage
 * {@link Failure} for missing settings, and for plain http to another machine, which would expose
 * the secret.
 */
export function readConnection(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Connection {
  const url = new URL(gatewayUrl(options, env))
  const local = LOOPBACK.test(url.hostname)
  const given = options.clientId ?? (env.PORTCULLIS_CLIENT_ID || undefined)
  const login = given === undefined ? loginFor(url.origin, env) : undefined
  if (login !== undefined) return { url: url.origin, clientId: login.clientId, login: true }
  const kept = local ? devVarsAround(cwd) : {}
  const clientId = given ?? kept.PORTCULLIS_CLIENT_ID
  if (!clientId)
    throw usage(
      `PORTCULLIS_CLIENT_ID is not set; ${FIRST_OPERATOR}, and \`portcullis login\` logs in a person`,
    )
  const keptSecret =
    clientId === kept.PORTCULLIS_CLIENT_ID ? kept.PORTCULLIS_CLIENT_SECRET : undefined
  const clientSecret = env.PORTCULLIS_CLIENT_SECRET || keptSecret
  if (!clientSecret) throw usage(`PORTCULLIS_CLIENT_SECRET is not set; ${FIRST_OPERATOR}`)
  return { url: url.origin, clientId, clientSecret }
}

/** Returns the origin of the gateway. Throws a usage failure, also for plain http to another machine. */
export function gatewayUrl({ url: named }: ConnectionOptions, env: NodeJS.ProcessEnv): string {
  const url = originOf(named ?? (env.PORTCULLIS_URL || localUrl(env)))
  if (!LOOPBACK.test(url.hostname) && url.protocol !== 'https:')
    throw usage(`${url.origin}: must be https, because the client's secret is sent there`)
  return url.origin
}

/** Returns the URL of a gateway on this machine. `npm start` reads the same variable. */
function localUrl({ PORT = '' }: NodeJS.ProcessEnv): string {
  const port = /^\d{1,5}$/.test(PORT) ? Number(PORT) : 0
  return port > 0 && port <= MAX_PORT ? `http://127.0.0.1:${port}` : DEFAULT_URL
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
  return existsSync(file) ? readVariables(file) : {}
}
