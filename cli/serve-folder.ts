/** Serves a project for `portcullis dev`. Loaded only by that command. */
import { isNodeFolder } from '../dev/start/main-config.ts'
import { serveProject } from '../dev/start/serve.ts'
import { readSettings } from '../dev/start/settings.ts'
import { createShutdown } from '../dev/start/shutdown.ts'
import { openProject } from '../dev/start/user-project.ts'
import { refused } from './failure.ts'
import { createLive } from './live/live.ts'
import { printFailure } from './output.ts'
import { followPolicy } from './policy/follow.ts'
import { serveNodeFolder } from './serve-node-folder.ts'

export interface ServeOptions {
  readonly json: boolean
  readonly verbose: boolean
}

/**
 * Serves the project in the folder `root` until a signal ends it, or until a problem does, which is
 * written to stderr. Ends this process.
 */
export async function serveFolder(root: string, { json, verbose }: ServeOptions): Promise<never> {
  const shutdown = createShutdown()
  try {
    const args = verbose ? ['--verbose'] : []
    const settings = readSettings(args, process.env, root)
    if (settings === 'help') return await shutdown.exit(0)
    const live = createLive(json)
    if (isNodeFolder(root)) await serveNodeFolder(root, settings, shutdown, live)
    else {
      const project = openProject(root)
      await serveProject(project, settings, shutdown, live, followPolicy(project, undefined))
    }
  } catch (error) {
    const { message } = error as Error
    // The message may have several lines: the mistakes of a configuration, or wrangler's output.
    if (!shutdown.signal.aborted && !json) process.stderr.write(`portcullis: ${message}\n`)
    if (!shutdown.signal.aborted && json) printFailure(refused('not_running', message), json)
  }
  return await shutdown.exit(1)
}
