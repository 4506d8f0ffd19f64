/**
 * The APIs of a shop to put behind one gateway: `node examples/shop/api.mjs [ports...]`, a port for each
 * API. They check nothing themselves. Each answers with its name, and with what it received.
 */
import { createServer } from 'node:http'

const DEFAULT_PORTS = [9101, 9102, 9103, 9104]
const HOST = '127.0.0.1'
const NAMES = ['orders', 'catalog', 'catalog-next', 'customers']

const ports = DEFAULT_PORTS.map((port, at) => Number(process.argv[2 + at] ?? port))
const servers = NAMES.map((api) =>
  createServer((request, response) => {
    const { method, url: path, headers } = request
    const caller = headers['x-auth-subject']
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(`${JSON.stringify({ api, method, path, caller })}\n`)
  }),
)
await Promise.all(
  servers.map(
    (server, at) => new Promise((resolve) => server.listen(ports[at], HOST, () => resolve(at))),
  ),
)
console.log(`The APIs of the shop listen on ${HOST}, ports ${ports.join(', ')}`)
