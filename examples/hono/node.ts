/** Serves the app with Node: the environment is that of the process. */
import { serve } from '@hono/node-server'
import app from './app.ts'

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 8788) }, ({ port }) => {
  console.error(`Listening on http://127.0.0.1:${port}`)
})
process.once('SIGTERM', () => server.close())
