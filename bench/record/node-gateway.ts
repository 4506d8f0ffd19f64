/** Gateways of a recorded run on Node. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../../dev/free-port.ts'
import { HOST, ROOT } from '../../dev/start/settings.ts'

/** A gateway process. */
export interface RecordedGateway {
  /** Returns the URL, which may change with each start. */
  url(): string
  start(): Promise<void>
  kill(): Promise<void>
  pause(): void
  resume(): void
  close(): Promise<void>
}

const READY = 'Portcullis is ready on'

/** Starts a gateway on Node. Throws an `Error` of one line if it does not start. */
export async function startNodeGateway(
  variables: Readonly<Record<string, string>>,
): Promise<RecordedGateway> {
  const port = await freePort()
  let child: ChildProcess

  async function start(): Promise<void> {
    child = spawn(process.execPath, [join(import.meta.dirname, 'node-process.ts')], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...variables, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const ready = new Promise<void>((resolve, reject) => {
      const listen = (chunk: Buffer) => {
        if (output.length < 10_000) output += chunk.toString()
        if (output.includes(READY)) resolve()
      }
      child.stdout?.on('data', listen)
      child.stderr?.on('data', listen)
      child.once('exit', () => reject(new Error(`the gateway has ended: ${output.trim()}`)))
    })
    await ready
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  await start()
  return {
    url: () => `http://${HOST}:${port}`,
    start,
    kill: () => end('SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    close: () => end('SIGKILL'),
  }
}
