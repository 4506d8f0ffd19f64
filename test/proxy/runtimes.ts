/** The test Worker of this folder on each runtime. */
import { freePort, ROOT, run } from '../harness/process.ts'
import { type Running, startWorkerd } from './workerd.ts'

const NODE = `${ROOT}/node_modules/node/bin/node`

/** Starts the test Worker, which forwards to `originUrl`. */
export type StartGateway = (originUrl: string) => Promise<Running>

const onWorkerd: StartGateway = (originUrl) =>
  startWorkerd({ entry: 'test/proxy/worker.ts', vars: { ORIGIN_URL: originUrl } })

const onNode: StartGateway = async (originUrl) => {
  const port = await freePort()
  const environment = { ORIGIN_URL: originUrl, PORT: String(port) }
  const { child, output, stop } = await run(
    [NODE, '--max-semi-space-size=16', 'test/proxy/node-process.ts'],
    environment,
    'listening',
  )
  return {
    port,
    pid: child.pid ?? 0,
    log: output,
    stop: async () => void (await stop()),
  }
}

export const RUNTIMES = [
  ['workerd', onWorkerd],
  ['Node', onNode],
] as const
