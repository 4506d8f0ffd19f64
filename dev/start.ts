/**
 * `npm start` and `npm run start:node`: runs all of Portcullis on this machine, reports when it is ready, and stops all its
 * processes at the end. The ready line, the examples and a line for each decision go to stdout,
 * progress and errors to stderr.
 */
import { join } from 'node:path'
import { createLive, type Live } from '../cli/live/live.ts'
import { followPolicy } from '../cli/policy/follow.ts'
import { serveNodeProject } from '../cli/serve-node-project.ts'
import { checkout } from './start/checkout.ts'
import { mapImports } from './start/map-imports.ts'
import { serveProject } from './start/serve.ts'
import { ROOT, readSettings, type Settings, USAGE } from './start/settings.ts'
import { createShutdown, type Shutdown } from './start/shutdown.ts'

async function main(): Promise<void> {
  // npm runs scripts in the package's folder, but paths are relative to the user's folder.
  const cwd = process.env.INIT_CWD ?? process.cwd()
  const shutdown = createShutdown()
  try {
    const settings = readSettings(process.argv.slice(2), process.env, cwd)
    if (settings === 'help') {
      console.log(USAGE)
      return await shutdown.exit(0)
    }
    const live = createLive(settings.json)
    if (settings.onNode) await serveOnNode(settings, shutdown, live)
    else {
      const followed = followPolicy(checkout, settings.policyFile)
      await serveProject(checkout, settings, shutdown, live, followed)
    }
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`portcullis: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}

/** Runs the gateway in this process, with Redis over RESP. Imported late: only this needs the server. */
async function serveOnNode(settings: Settings, shutdown: Shutdown, live: Live): Promise<never> {
  mapImports()
  const { serve } = await import('../src/runtimes/node/index.ts')
  return await serveNodeProject({
    root: ROOT,
    file: settings.policyFile ?? join(ROOT, 'portcullis.config.ts'),
    // The demo origin of the checkout is a Worker.
    projectOf: () => ({ ...checkout, demoOrigin: undefined }),
    serve,
    ...{ settings, shutdown, live },
  })
}

await main()
