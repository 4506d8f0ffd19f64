/** Runs the gateway under `wrangler dev`. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { line } from '../../dev/dev-vars.ts'
import { freePort } from '../../dev/free-port.ts'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import { complaint, startWrangler, type Wrangler } from '../../dev/start/wrangler.ts'
import { descendants, listensOn } from '../processes/proc.ts'
import { type Bundle, bundleOnce, LAYERS_CONFIG } from './bundle.ts'
import { type Ground, gatewayVariables, type Target } from './gateway.ts'

const START_TIMEOUT_MS = 60_000
const POLL_MS = 100
const REQUEST_TIMEOUT_MS = 5_000
const OWNER_ONLY = 0o600

/** Starts the gateway with all layers in one isolate, on a free port. */
export async function startWranglerDev(
  { backends, signingKeys }: Pick<Ground, 'backends' | 'signingKeys'>,
  directory: string,
): Promise<Target> {
  const bundle = await bundleOnce(LAYERS_CONFIG, directory)
  const variables = Object.entries(gatewayVariables(backends, signingKeys))
  const file = join(directory, 'gateway.env')
  writeFileSync(file, variables.map(([name, value]) => `${line(name, value)}\n`).join(''), {
    mode: OWNER_ONLY,
  })
  const port = await freePort()
  const wrangler = startWrangler(
    [
      ...['dev', '-c', configFor(bundle, directory), '--no-bundle'],
      ...['--ip', HOST, '--port', String(port)],
      ...['--inspector-port', '0', '--env-file', file, '--log-level', 'warn'],
      ...['--persist-to', join(directory, 'state'), '--show-interactive-dev-session=false'],
    ],
    directory,
  )
  try {
    await untilAnswering(`http://${HOST}:${port}/`, wrangler)
    const pid = gatewayProcess(port)
    return {
      urlOf: ({ stage }) => `http://${HOST}:${port}/${stage}`,
      pidOf: () => pid,
      countsCalls: true,
      close: wrangler.stop,
    }
  } catch (error) {
    await wrangler.stop()
    throw error
  }
}

/** Writes a configuration that serves the bundle, which does not change, as it is. */
function configFor(bundle: Bundle, directory: string): string {
  const file = join(directory, 'wrangler.toml')
  const config = readFileSync(join(ROOT, LAYERS_CONFIG), 'utf8')
  writeFileSync(
    file,
    config
      .replace(/^main = .*$/m, () => `main = ${JSON.stringify(bundle.file)}`)
      .replace(/^minify = .*\n/m, ''),
  )
  return file
}

/** Returns the process of the gateway. The other workerd process only forwards to it. */
function gatewayProcess(publicPort: number): number {
  const [pid, ...others] = descendants(process.pid, 'workerd').filter(
    (candidate) => !listensOn(candidate, publicPort),
  )
  if (pid === undefined || others.length > 0)
    throw new Error('cannot find the process of wrangler that runs the gateway')
  return pid
}

/** Waits for any response: no layer has the root path. */
async function untilAnswering(url: string, wrangler: Wrangler): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS
  let ended = false
  wrangler.ended.then(() => {
    ended = true
  })
  while (true) {
    try {
      await fetch(url, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) })
      return
    } catch {
      if (ended || Date.now() > deadline)
        throw new Error(`wrangler dev does not start: ${complaint(wrangler.lines())}`)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }
}
