/** Why no test runs a `console` block as it is written, and the test that runs the same with values of its own. */

const CLOUDFLARE = 'needs an account of Cloudflare'
const PROVIDER = 'needs an identity provider or a server of the reader'
const MACHINE = 'changes the machine as root'
const CONTAINERS = 'needs Docker or Kubernetes, and a registry'
const UNPUBLISHED = 'installs the package by its name, which no registry has'
const LONG = 'installs or builds for longer than a test may'
const VALUES = 'has a host, a secret or a file of the reader'
const RUNNING = 'assumes servers that the reader has started'

/** The first words of a block, the reason, and the test if there is one. */
type Console = readonly [starts: string, reason: string, test?: string]

/** All `console` blocks, in the order of the documents. */
export const CONSOLES: Readonly<Record<string, readonly Console[]>> = {
  'dev/package/README.md': [
    ['npm install hono zod', UNPUBLISHED, 'test/package/consumers.slow.test.ts'],
    ['npx portcullis explain', UNPUBLISHED, 'test/cli/explain.slow.test.ts'],
  ],
  'docs/audit.md': [
    ['find exports', VALUES],
    ['npx wrangler d1 execute', CLOUDFLARE],
    ['npm install pg', MACHINE],
    ['npx portcullis keys generate', CLOUDFLARE, 'test/cli/audit-verify.slow.test.ts'],
    ['npx wrangler d1 execute', CLOUDFLARE, 'test/cli/audit-verify.slow.test.ts'],
  ],
  'docs/authorization-server.md': [
    ['npm install jose', VALUES, 'test/features/operators/clients.test.ts'],
  ],
  'docs/deploy.md': [
    ['npx portcullis deploy --plan', CLOUDFLARE, 'test/cli/deploy/deploy.slow.test.ts'],
    ['npx portcullis deploy --env', CLOUDFLARE, 'test/cli/deploy/deploy.slow.test.ts'],
    ['npx portcullis deploy rollback', CLOUDFLARE, 'test/cli/deploy/deploy.slow.test.ts'],
  ],
  'docs/environment.md': [['REDIS_URL=', RUNNING, 'test/dev/start/start.slow.test.ts']],
  'docs/forward-auth.md': [['curl -i', RUNNING, 'test/features/forward-auth/proxies.slow.test.ts']],
  'docs/guards.md': [
    ['npm install portcullis', UNPUBLISHED, 'test/guard/frameworks.slow.test.ts'],
    ['npm install express', LONG, 'test/express/try.slow.test.ts'],
    ['npm install fastify', LONG, 'test/guard/frameworks.slow.test.ts'],
  ],
  'docs/identity-providers.md': [
    ['npx portcullis idp doctor -', PROVIDER, 'test/cli/idp-doctor.slow.test.ts'],
    ['npx portcullis idp doctor https:', PROVIDER, 'test/cli/idp-doctor-provider.slow.test.ts'],
  ],
  'docs/mcp.md': [
    ['npm ci', LONG, 'test/create/checkout.slow.test.ts'],
    ['export PUBLIC_URL', PROVIDER],
    ['npx portcullis serve', PROVIDER, 'test/cli/serve.slow.test.ts'],
    ['npx portcullis clients create', RUNNING, 'test/features/mcp/machine-clients.test.ts'],
    ['npx portcullis mcp import', PROVIDER, 'test/cli/mcp/import.test.ts'],
  ],
  'docs/node.md': [
    ['mkdir my-gateway', UNPUBLISHED, 'test/docs/tutorial.slow.test.ts'],
    ['export PUBLIC_URL', PROVIDER],
    ['npx portcullis serve --check', PROVIDER, 'test/cli/serve.slow.test.ts'],
    ['curl -i', PROVIDER, 'test/cli/serve.slow.test.ts'],
    ['echo "PUBLIC_URL=', RUNNING, 'test/docs/tutorial.slow.test.ts'],
    ['TOKEN=$(npx portcullis token', RUNNING, 'test/docs/tutorial.slow.test.ts'],
    ['export PORTCULLIS_URL', VALUES, 'test/cli/operating.slow.test.ts'],
    ['kill -HUP', VALUES, 'test/cli/serve-reload.slow.test.ts'],
    ['npx portcullis serve', RUNNING, 'test/cli/serve-workers.slow.test.ts'],
  ],
  'docs/operate.md': [
    ['export PORTCULLIS_URL', PROVIDER, 'test/cli/login/login.slow.test.ts'],
    ['npx portcullis doctor', VALUES, 'test/cli/doctor.slow.test.ts'],
  ],
  'docs/policy-tools.md': [
    ['npx portcullis explain', VALUES, 'test/cli/explain-event.slow.test.ts'],
  ],
  'docs/self-hosting.md': [
    ['sudo cp ops/redis.conf', MACHINE],
    ['sudo cp --recursive', MACHINE],
    ['sudo install', MACHINE, 'test/cli/serve.slow.test.ts'],
    ['sudo cp ops/systemd', MACHINE, 'test/ops/systemd.test.ts'],
    ['sudo cp ops/nginx', MACHINE, 'test/ops/nginx.slow.test.ts'],
    ['cd /opt/portcullis', MACHINE, 'test/cli/doctor-node.slow.test.ts'],
    ['cp ops/docker', CONTAINERS, 'test/ops/compose.slow.test.ts'],
    ['docker build', CONTAINERS, 'test/ops/docker.slow.test.ts'],
    ['kubectl apply', CONTAINERS, 'test/ops/kubernetes.slow.test.ts'],
    ['kubectl apply', CONTAINERS, 'test/ops/kubernetes.slow.test.ts'],
    ['npx autocannon', RUNNING],
    ['sudo npm ci', MACHINE],
    ['redis-cli --rdb', RUNNING, 'test/ops/compose.slow.test.ts'],
    ['sudo systemctl stop', MACHINE, 'test/ops/compose.slow.test.ts'],
    ['sudo sqlite3', MACHINE],
  ],
  'docs/several-gateways.md': [
    ['sudo systemctl restart', MACHINE],
    ['curl --silent', VALUES],
  ],
  'docs/tutorial.md': [
    ['npm ci', LONG, 'test/docs/tutorial.slow.test.ts'],
    ['mkdir ../my-api', LONG, 'test/docs/tutorial.slow.test.ts'],
  ],
  'docs/your-api.md': [['npm ci', LONG, 'test/create/checkout.slow.test.ts']],
  'examples/mcp/README.md': [
    ['npx node examples/mcp', LONG, 'test/features/mcp/example.slow.test.ts'],
    ['PORTCULLIS_CONFIG=', RUNNING, 'test/features/mcp/example.slow.test.ts'],
    ['TOKEN=', RUNNING, 'test/features/mcp/example.slow.test.ts'],
    ['export ISSUERS', PROVIDER],
  ],
  'ops/README.md': [
    ['npx portcullis clients create', RUNNING, 'test/features/operators/clients.test.ts'],
    ['promtool check rules', LONG, 'test/ops/ops.slow.test.ts'],
  ],
}
