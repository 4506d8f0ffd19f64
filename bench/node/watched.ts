/** Preloaded by a gateway on Node: serves its watched deadlines on `WATCH_PORT`. */
import { createServer } from 'node:http'
import { watchDeadlines } from '../workers/watched.ts'
import { HOST } from './environment.ts'

const take = watchDeadlines()
const server = createServer((_, response) => response.end(JSON.stringify(take())))
server.listen(Number(process.env.WATCH_PORT), HOST).unref()
