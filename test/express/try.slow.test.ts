/** The app that docs/guards.md offers for a trial. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort, ROOT } from '../harness/process.ts'

test('the app for a trial runs alone, and refuses, admits and limits as the guide says', async () => {
  const port = await freePort()
  const child = spawn(join(ROOT, 'node_modules/.bin/tsx'), ['examples/guards/try.ts'], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  try {
    const [printed] = await Promise.race([once(child.stdout, 'data'), exited])
    const headers = { Authorization: `Bearer ${String(printed).trim()}` }
    const url = `http://127.0.0.1:${port}/notes`
    const refused = await fetch(url)
    expect([refused.status, await refused.json()]).toMatchObject([401, { code: 'missing_token' }])
    const statuses: number[] = []
    for (let count = 0; count < 6; count++) {
      const response = await fetch(url, { headers })
      statuses.push(response.status)
      const body: unknown = await response.json()
      if (response.ok) expect(body).toEqual({ notesOf: 'alice' })
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  } finally {
    child.kill('SIGTERM')
    await exited
  }
})
