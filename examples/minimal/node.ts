/** The minimal gateway as a server on Node. */
import { serve } from 'portcullis/node'
import policy from './policy.ts'

const server = await serve({ policy, port: 8080 })
process.once('SIGTERM', () => server.close())
