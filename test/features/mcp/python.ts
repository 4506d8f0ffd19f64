/** The official client for Python, in an environment of its own. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { makeOnce } from '../../dev/start/artifact.ts'
import { createPythonEnvironment } from '../../harness/python.ts'
import { type Login, REDIRECT_URI } from './login.ts'
import type { Exchange, Transcript } from './transcript.ts'

const PACKAGE = 'mcp==2.3.0'
export const PYTHON = `Python ${PACKAGE.replace('==', ' ')}`

/** Installs the client once for all tests. Returns undefined if Python, pip or the registry is missing. */
export async function installPython(): Promise<{ readonly interpreter: string } | undefined> {
  try {
    const folder = await makeOnce({
      name: `python-${PACKAGE}`,
      inputs: [],
      async make(draft) {
        createPythonEnvironment(draft, PACKAGE)
      },
    })
    return { interpreter: join(folder, 'bin/python') }
  } catch {
    console.info(`MCP: the client for Python is skipped, because pip cannot install ${PACKAGE}`)
    return undefined
  }
}

type Event = Partial<Exchange> & {
  readonly step?: string
  readonly visit?: string
  readonly revoke?: string
}

/** Runs the client. Returns its results, the URLs of its logins, and what it wrote to stderr. */
export async function runPython(interpreter: string, login: Login, transcript: Transcript) {
  const script = join(import.meta.dirname, 'client.py')
  const known = [login.clientId, ...(login.documentUrl === undefined ? [] : [login.documentUrl])]
  const program = spawn(interpreter, [script, login.url, REDIRECT_URI, ...known])
  let errors = ''
  program.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const visits: URL[] = []
  const results: unknown[] = []
  for await (const line of createInterface(program.stdout)) {
    const event = JSON.parse(line) as Event
    if (event.step !== undefined) transcript.step(event.step)
    else if (event.method !== undefined) transcript.exchange(event as Exchange)
    else if (event.visit !== undefined) {
      const url = new URL(event.visit)
      visits.push(url)
      transcript.browser(url)
      program.stdin.write(`${await login.follow(url)}\n`)
    } else if (event.revoke !== undefined) {
      await login.revoke(event.revoke)
      program.stdin.write('revoked\n')
    } else results.push(event)
  }
  return { results, visits, errors }
}
