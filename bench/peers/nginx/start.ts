/** nginx as a bare proxy with kept connections: the minimum cost of forwarding a request. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOST } from '../../../dev/start/settings.ts'
import { freePort } from '../../processes/proc.ts'
import type { Peer } from '../peer.ts'
import { startServer, versionOf } from '../server.ts'

export const nginx: Peer = {
  id: 'nginx',
  title: 'nginx, bare proxy',
  optional: true,
  inQuick: true,
  compiles: false,
  refuses: {},
  identifies: false,
  redisCalls: [0, 0],
  does: { remembers: '-', cutOffs: 'no', limit: 'no', audit: 'no', tells: 'no' },
  async start({ backends, directory }) {
    const port = await freePort()
    const file = join(directory, 'nginx.conf')
    writeFileSync(file, nginxConfig(port, new URL(backends.originUrl).host))
    const server = await startServer({
      program: 'nginx',
      args: ['-p', directory, '-c', file, '-e', 'stderr'],
      port,
      directory,
    })
    return { ...server, version: `nginx ${await versionOf('nginx', '-v')}` }
  },
}

/** Returns a configuration with one worker. `origin` is `host:port`. */
export function nginxConfig(port: number, origin: string): string {
  return `daemon off;
worker_processes 1;
pid nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests 1000000000;
  upstream origin {
    server ${origin};
    keepalive 64;
    keepalive_requests 1000000000;
  }
  server {
    listen ${HOST}:${port};
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`
}
