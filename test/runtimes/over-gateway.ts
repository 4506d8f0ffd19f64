/** The gateway over Redis by Upstash's REST API. */
import { app } from './gateway-app.ts'
import { serveApp } from './guarded-server.ts'

serveApp(app)
