/** Runs `portcullis dev` during the tests. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    url: string
  }
}

/** Another port than that of `npm start`. */
const PORT = '8799'

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = spawn('portcullis', ['dev', '--json'], {
    env: { ...process.env, PORT },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(server, 'exit')
  const line = await Promise.race([once(server.stdout, 'data'), ended.then(() => undefined)])
  if (line === undefined) throw new Error('portcullis dev did not start')
  provide('url', JSON.parse(String(line[0])).url)
  return async () => {
    server.kill('SIGTERM')
    await ended
  }
}
