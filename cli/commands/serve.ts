/** `portcullis serve`: runs the gateway of this project on Node. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { portNumber } from '../arguments.ts'
import { offlineCommand } from '../command.ts'

const MAX_WORKERS = 128

const HELP = `
Serves the policy of the project on Node, without Cloudflare. It needs Node 22, and Node 22.18 to read a
policy in TypeScript. The configuration comes from the environment, see docs/environment.md and
docs/node.md. The file of --values has values of variables that are not set, NAME=value a line.

With --workers, a primary process starts that many gateways, and a new one for each that ends. The log is
on stdout, a JSON object a line. With --pretty it is text for people: method, path, status, reason, caller and
duration of each request, what each changed policy changes, and keys on a terminal (h shows them). Paths
can be personal data: use --pretty where you develop.

SIGHUP loads the policy and the certificate again. Connections, open streams and windows of limits stay. With
--watch, a changed file of the policy does it too. A policy with mistakes is not used: the log has each
mistake. The audit trail has each change. The environment is read only at the start.

SIGTERM or Ctrl-C ends it: it answers the requests that it has, sends its audit events, and exits. A
second signal ends it at once.

Environment, in addition:
  PORT, HOST       as --port and --host, which take precedence
  TRUSTED_PROXIES  networks of the proxies in front of the gateway, such as 10.0.0.0/8. Their
                   X-Forwarded-For is used.
  PROXY_HEADER     x-forwarded-for, or forwarded to use Forwarded (RFC 7239) instead
  PROXY_TARGET_HEADERS
                   headers in which they report scheme, host and port: x-forwarded-proto,
                   x-forwarded-host, x-forwarded-port, or forwarded
  PROXY_COUNTRY_HEADER, PROXY_CITY_HEADER
                   headers in which they report where their client is, such as x-geo-country
  TLS_CERT_FILE, TLS_KEY_FILE
                   certificate and key, in PEM. Changed files are used within ten seconds, or at once
                   after SIGHUP.

Exit codes: 0 stopped, 1 it cannot listen or was ended at once, 2 a mistake in the configuration.`

export function addServeCommand(program: Command): void {
  offlineCommand(program, {
    name: 'serve',
    does: 'run the gateway of this project on Node',
    examples: [
      'portcullis serve',
      'portcullis serve --watch',
      'portcullis serve --pretty --watch',
      'portcullis serve --host 0.0.0.0 --port 8080 --workers 4',
      'portcullis serve --check --values production.env',
    ],
  })
    .option('--config <file>', 'the policy (default: portcullis.config.ts, or .js)')
    .option('--values <file>', 'file with values of variables')
    .option(
      '--port <number>',
      'port to listen on, 0 for a free one (default: PORT, or 8787)',
      portNumber,
    )
    .option('--host <address>', 'address to listen on (default: HOST, or 127.0.0.1)')
    .option('--workers <number>', 'processes that share the port (default: 1)', workerCount)
    .option('--watch', 'use a changed policy without a restart')
    .option('--pretty', 'print for people: where it is, and a line for each decision')
    .option('--check', 'check the policy and the environment, and exit')
    .addHelpText('after', HELP)
    .action(async (options) => {
      const { serveOnNode } = await import('../serve-on-node.ts')
      await serveOnNode(options, process.env, process.cwd())
    })
}

function workerCount(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_WORKERS) return count
  throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_WORKERS}.`)
}
