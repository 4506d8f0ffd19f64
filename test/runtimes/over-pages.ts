/** The guarded app as a function of Cloudflare Pages, over Redis by Upstash's REST API. */
import { handle } from 'hono/cloudflare-pages'
import { app } from './guarded-app.ts'

export const onRequest = handle(app)
