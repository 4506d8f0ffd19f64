/** URLs of a Redis over RESP. */

export interface RedisServer {
  readonly host: string
  readonly port: number
}

interface Login {
  /** Undefined: the default user. */
  readonly username: string | undefined
  readonly password: string | undefined
}

/** A Redis, or the Sentinels that find one. Contains passwords. */
export interface RedisTarget extends Login {
  /** One server; with `master` the Sentinels. */
  readonly servers: readonly RedisServer[]
  /** The name of the master that the Sentinels watch. Undefined: no Sentinels. */
  readonly master: string | undefined
  readonly sentinelLogin: Login
  /** TLS to Redis and to the Sentinels. */
  readonly tls: boolean
  readonly database: number
}

const REDIS_PORT = 6_379
const SENTINEL_PORT = 26_379

const LOGIN = '(?:(?<username>[^:@/?#]*):(?<password>[^@/?#]+)@)?'
const DATABASE = '(?:/(?<database>\\d{0,5}))?'
const SERVER_URL = new RegExp(`^redis(?<tls>s?)://${LOGIN}(?<servers>[^,@/?#]+)${DATABASE}$`)
const SENTINEL_URL = new RegExp(
  `^redis(?<tls>s?)\\+sentinel://${LOGIN}(?<servers>[^,@/?#]+(?:,[^,@/?#]+)*)/(?<master>[^/?#]+)${DATABASE}(?:\\?(?<query>[^#]*))?$`,
)
const SENTINEL_LOGIN = ['sentinelUsername', 'sentinelPassword']

/**
 * Parses the URL of a server, `redis://[[user]:password@]host[:port][/database]`, or of the Sentinels
 * of a master, `redis+sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database]`.
 * `rediss` is TLS. Sentinels that need a login find it in the query:
 * `?sentinelUsername=…&sentinelPassword=…`. Credentials are percent-encoded. Returns undefined for any
 * other text.
 */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  const parts = (SERVER_URL.exec(text) ?? SENTINEL_URL.exec(text))?.groups
  if (parts === undefined) return undefined
  const { servers = '', master, username, password, database } = parts
  const query = new URLSearchParams(parts.query)
  if ([...query.keys()].some((name) => !SENTINEL_LOGIN.includes(name))) return undefined
  const port = master === undefined ? REDIS_PORT : SENTINEL_PORT
  try {
    return {
      servers: servers.split(',').map((server) => parseServer(server, port)),
      master: decoded(master),
      username: decoded(username),
      password: decoded(password),
      sentinelLogin: {
        username: query.get('sentinelUsername') ?? undefined,
        password: query.get('sentinelPassword') ?? undefined,
      },
      tls: parts.tls === 's',
      database: Number(database ?? 0),
    }
  } catch {
    return undefined
  }
}

/** Throws a `TypeError` for an invalid address. */
function parseServer(text: string, defaultPort: number): RedisServer {
  const { hostname, port } = new URL(`redis://${text}`)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return { host, port: port === '' ? defaultPort : Number(port) }
}

/** Throws a `URIError` for an invalid escape sequence. */
const decoded = (text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : decodeURIComponent(text)
