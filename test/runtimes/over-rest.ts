/** The guarded app over Redis by Upstash's REST API. */
import { app } from './guarded-app.ts'
import { serveApp } from './guarded-server.ts'

serveApp(app)
