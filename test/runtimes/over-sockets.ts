/** The guarded app over `portcullis/redis`. */
import { redis } from '../../src/runtimes/node/redis/index.ts'
import { createApp } from './guarded-app.ts'
import { serveApp } from './guarded-server.ts'

serveApp(createApp(({ REDIS_URL }) => redis(REDIS_URL, { timeoutMs: 5_000 })))
