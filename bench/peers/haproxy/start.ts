/** HAProxy, which verifies tokens itself and counts by subject in memory. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOST } from '../../../dev/start/settings.ts'
import { freePort } from '../../processes/proc.ts'
import type { Grounds, Peer } from '../peer.ts'
import { startServer, versionOf } from '../server.ts'

export const haproxy: Peer = {
  id: 'haproxy',
  title: 'HAProxy',
  optional: true,
  inQuick: true,
  compiles: false,
  refuses: { missing: 401, forged: 401, expired: 401 },
  identifies: true,
  redisCalls: [0, 0],
  does: {
    remembers: 'no',
    cutOffs: 'no',
    limit: 'in its memory',
    audit: 'no',
    tells: 'subject',
  },
  async start({ backends, publicKey, issuer, limit, directory }) {
    const port = await freePort()
    const file = join(directory, 'haproxy.cfg')
    const key = join(directory, 'issuer.pem')
    writeFileSync(key, publicKey)
    writeFileSync(
      file,
      haproxyConfig({ port, origin: new URL(backends.originUrl).host, issuer, key, limit }),
    )
    const server = await startServer({
      program: 'haproxy',
      args: ['-q', '-db', '-f', file],
      port,
      directory,
    })
    return { ...server, version: `HAProxy ${await versionOf('haproxy', '-v')}` }
  },
}

type HaproxyOptions = Pick<Grounds, 'issuer' | 'limit'> & {
  readonly port: number
  /** `host:port`. */
  readonly origin: string
  /** File with the public key, PEM. */
  readonly key: string
}

/** Returns a configuration with one thread. Cheap checks come first, the signature last. */
function haproxyConfig({ port, origin, issuer, key, limit }: HaproxyOptions): string {
  return `global
  nbthread 1
  maxconn 1000
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  timeout http-keep-alive 60s
frontend gate
  bind ${HOST}:${port}
  http-request set-var(txn.bearer) http_auth_bearer
  http-request return status 401 hdr WWW-Authenticate Bearer unless { var(txn.bearer) -m found }
  http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
  http-request set-var(txn.typ) var(txn.bearer),jwt_header_query('$.typ')
  http-request set-var(txn.iss) var(txn.bearer),jwt_payload_query('$.iss')
  http-request set-var(txn.aud) var(txn.bearer),jwt_payload_query('$.aud')
  http-request set-var(txn.sub) var(txn.bearer),jwt_payload_query('$.sub')
  http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date
  acl is_good var(txn.alg) -m str ES256
  acl is_good_type var(txn.typ) -m str at+jwt
  acl is_issuer var(txn.iss) -m str ${issuer}
  acl is_audience var(txn.aud) -m str ${issuer}
  acl is_alive var(txn.exp),sub(txn.now) -m int gt 0
  acl is_signed var(txn.bearer),jwt_verify(txn.alg,"${key}") -m int 1
  http-request return status 401 hdr WWW-Authenticate Bearer unless is_good is_good_type is_issuer is_audience is_alive is_signed
  http-request track-sc0 var(txn.sub) table limits
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ${limit} }
  http-request del-header Authorization
  http-request set-header X-Auth-Subject %[var(txn.sub)]
  default_backend origin
backend origin
  http-reuse always
  server origin ${origin}
backend limits
  stick-table type string len 64 size 100k expire 2m store http_req_rate(60s)
`
}
