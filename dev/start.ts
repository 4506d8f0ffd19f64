/**
 * `npm start` and `npm run start:node`: runs all of Portcullis on this machine, reports when it is ready, and stops all its
 * processes at the end. The ready line and the examples go to stdout, progress and errors to
 * stderr.
 */
import { checkout } from './start/checkout.ts'
import { serveProject } from './start/serve.ts'
import { serveOnNode } from './start/serve-node.ts'
import { readSettings, USAGE } from './start/settings.ts'
import { createShutdown } from './start/shutdown.ts'

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
    const serve = settings.onNode ? serveOnNode : serveProject
    await serve(checkout, settings, shutdown, (url, examples) => {
      console.log(`Portcullis is ready on ${url}\n${examples}`)
    })
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`portcullis: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}

await main()
