/** A gateway of the recorded run on Node, with the variables of its environment. Ends with SIGTERM. */
import { serve } from '../../src/runtimes/node/index.ts'
import { policy } from './policy.ts'

const server = await serve({ policy, port: Number(process.env.PORT) })
process.once('SIGTERM', () => void server.close().then(() => process.exit()))
console.log(`Portcullis is ready on ${server.url}`)
