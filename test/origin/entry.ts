/** Entry modules that the table of runtimes can start. */
import { type Runtime, WORKERS } from '../../src/gateway/runtime.ts'

interface App {
  fetch(request: Request, bindings: never, context: ExecutionContext): Response | Promise<Response>
}

/** Builds the app of an entry from the variables of its process and the ports of its runtime. */
export type Build<Env> = (env: Env, runtime: Runtime) => App

/** Creates a Worker that builds its app once. `node-process.ts` builds and serves the same app on Node. */
export function entry<Env>(build: Build<Env>) {
  let app: App | undefined
  return {
    build,
    fetch(request: Request, env: Env, context: ExecutionContext) {
      app ??= build(env, WORKERS)
      return app.fetch(request, env as never, context)
    },
  }
}
