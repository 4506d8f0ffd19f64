/** URLs of a Redis over RESP. */
import { MAX_LANES } from '../../../redis/lanes.ts'

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
  /** One server; with `master` the Sentinels; with `lanes` some nodes of the cluster. */
  readonly servers: readonly RedisServer[]
  /** The name of the master that the Sentinels watch. Undefined: no Sentinels. */
  readonly master: string | undefined
  readonly sentinelLogin: Login
  /** TLS to Redis and to the Sentinels. */
  readonly tls: boolean
  readonly database: number
  /** The number of lanes of a cluster, whose nodes are `servers`. Undefined: no cluster. */
  readonly lanes?: number | undefined
  /** Of a cluster: new credentials go to the control lane, as earlier versions expect. */
  readonly credentialsInControl?: boolean | undefined
}

const REDIS_PORT = 6_379
const SENTINEL_PORT = 26_379

const LOGIN = '(?:(?<username>[^:@/?#]*):(?<password>[^@/?#]+)@)?'
const DATABASE = '(?:/(?<database>\\d{0,5}))?'
const SERVER_URL = new RegExp(`^redis(?<tls>s?)://${LOGIN}(?<servers>[^,@/?#]+)${DATABASE}$`, 'i')
const SENTINEL_URL = new RegExp(
  `^redis(?<tls>s?)\\+sentinel://${LOGIN}(?<servers>[^,@/?#]+(?:,[^,@/?#]+)*)/(?<master>[^/?#]+)${DATABASE}(?:\\?(?<query>[^#]*))?$`,
  'i',
)
const CLUSTER_URL = new RegExp(
  `^redis(?<tls>s?)\\+cluster://${LOGIN}(?<servers>[^,@/?#]+(?:,[^,@/?#]+)*)(?:/(?<path>[^?#]*))?(?:\\?(?<query>[^#]*))?$`,
  'i',
)
const DEFAULT_LANES = 64
const CLUSTER_PARAMETERS = ['lanes', 'credentials']
const SENTINEL_LOGIN = ['sentinelUsername', 'sentinelPassword']

/** What `REDIS_URL` may be, for messages. */
const REDIS_URL_FORMS =
  'must be redis://host:port, rediss://host:port, redis+sentinel://host:port/master or redis+cluster://host:port,host:port'

/** Returns what is wrong with the URL, or undefined for a valid one. Never contains the URL. */
export function findUrlMistake(text: string): string | undefined {
  if (parseRedisUrl(text) !== undefined) return undefined
  const parts = CLUSTER_URL.exec(text)?.groups
  if (parts === undefined) return REDIS_URL_FORMS
  if (parts.path) return 'a Redis Cluster has no database number; remove the path from the URL'
  const query = new URLSearchParams(parts.query)
  if ([...query.keys()].some((name) => !CLUSTER_PARAMETERS.includes(name)))
    return 'the URL of a Redis Cluster has only the parameters lanes and credentials, such as ?lanes=64'
  if (query.has('lanes') && parseLanes(query) === undefined)
    return `lanes must be one whole number from 1 to ${MAX_LANES}, such as ?lanes=64`
  if (query.has('credentials') && parsePlace(query) === undefined)
    return 'credentials must be lanes or control, once, such as ?lanes=64&credentials=control'
  return REDIS_URL_FORMS
}

/**
 * Parses the URL of a server, `redis://[[user]:password@]host[:port][/database]`, or of the Sentinels
 * of a master, `redis+sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database]`.
 * `rediss` is TLS. Sentinels that need a login find it in the query:
 * `?sentinelUsername=…&sentinelPassword=…`. Some nodes of a Redis Cluster:
 * `redis+cluster://[[user]:password@]host[:port][,host[:port]…]/[?lanes=64][&credentials=control]`;
 * every node has the same login. Credentials are percent-encoded. Returns undefined for any other text.
 */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  const cluster = CLUSTER_URL.exec(text)?.groups
  if (cluster !== undefined) return clusterTarget(cluster)
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
      tls: parts.tls !== '',
      database: Number(database ?? 0),
    }
  } catch {
    return undefined
  }
}

function clusterTarget({
  servers = '',
  username,
  password,
  tls,
  path,
  query,
}: Readonly<Record<string, string | undefined>>): RedisTarget | undefined {
  const parameters = new URLSearchParams(query)
  const [lanes, place] = [parseLanes(parameters), parsePlace(parameters)]
  const isKnown = [...parameters.keys()].every((name) => CLUSTER_PARAMETERS.includes(name))
  if (path || lanes === undefined || place === undefined || !isKnown) return undefined
  try {
    return {
      servers: servers.split(',').map((server) => parseServer(server, REDIS_PORT)),
      master: undefined,
      username: decoded(username),
      password: decoded(password),
      sentinelLogin: { username: undefined, password: undefined },
      tls: tls !== '',
      database: 0,
      lanes,
      credentialsInControl: place === 'control',
    }
  } catch {
    return undefined
  }
}

function parseLanes(query: URLSearchParams): number | undefined {
  const [text = String(DEFAULT_LANES), ...more] = query.getAll('lanes')
  const lanes = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0
  return lanes >= 1 && lanes <= MAX_LANES && more.length === 0 ? lanes : undefined
}

/** Returns where new credentials go. */
function parsePlace(query: URLSearchParams): 'lanes' | 'control' | undefined {
  const [place = 'lanes', ...more] = query.getAll('credentials')
  return (place === 'lanes' || place === 'control') && more.length === 0 ? place : undefined
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
