/**
 * An API to put behind the gateway: `node examples/books/api.mjs [port]`. It checks nothing itself.
 * The caller's identity is in headers that only the gateway can set.
 */
import { createServer } from 'node:http'

const DEFAULT_PORT = 9000
const HOST = '127.0.0.1'
const BOOKS = { 1: { title: 'Moby-Dick' }, 2: { title: 'Middlemarch' } }

const server = createServer((request, response) => {
  const id = request.url?.split('/')[2]
  const found = id === undefined ? Object.values(BOOKS) : BOOKS[id]
  const caller = request.headers['x-auth-subject']
  response.writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ books: found ?? null, caller }))
})

server.listen(Number(process.argv[2] ?? DEFAULT_PORT), HOST, () => {
  const address = server.address()
  console.log(`The books API listens on http://${HOST}:${address?.port}`)
})
