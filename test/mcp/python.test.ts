/** The official client for Python, in an environment of its own. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, test } from 'vitest'
import { REDIRECT_URI, startLogin } from './login.ts'

const PACKAGE = 'mcp==2.3.0'
const INSTALL_MS = 120_000
const folder = mkdtempSync(join(tmpdir(), 'mcp-python-'))

/** Returns the interpreter, or undefined if Python, pip or the registry is missing. */
function install(): string | undefined {
  const options = { timeout: INSTALL_MS, stdio: 'ignore' } as const
  try {
    execFileSync('python3', ['-m', 'venv', folder], options)
    execFileSync(join(folder, 'bin/pip'), ['install', '--quiet', PACKAGE], options)
    return join(folder, 'bin/python')
  } catch {
    console.info(`MCP: the client for Python is skipped, because pip cannot install ${PACKAGE}`)
    return undefined
  }
}

const python = install()
afterAll(() => rmSync(folder, { recursive: true }))

interface Event {
  readonly visit?: string
  readonly revoke?: string
}

describe.skipIf(python === undefined).each(['the provider', 'the gateway'] as const)(
  'with the login at %s',
  (at) => {
    test('login, call, a login with more scopes, refresh, and a login after the revocation', async () => {
      const login = await startLogin(at)
      const program = spawn(
        python ?? '',
        [join(import.meta.dirname, 'client.py'), login.url, login.clientId, REDIRECT_URI],
        { stdio: ['pipe', 'pipe', 'pipe'] },
      )
      let errors = ''
      program.stderr.on('data', (chunk) => {
        errors += chunk
      })
      const scopes: (string | null)[] = []
      const results: unknown[] = []
      for await (const line of createInterface(program.stdout)) {
        const event = JSON.parse(line) as Event
        if (event.visit !== undefined) {
          const url = new URL(event.visit)
          scopes.push(url.searchParams.get('scope'))
          expect(url.searchParams.get('resource')).toBe(login.url)
          program.stdin.write(`${await login.follow(url)}\n`)
        } else if (event.revoke !== undefined) {
          await login.revoke(event.revoke)
          program.stdin.write('revoked\n')
        } else results.push(event)
      }
      await login.close()
      expect(errors).toBe('')
      expect(results).toEqual([
        { tools: ['list_shelves'] },
        { result: 'fiction, history' },
        { result: 'removed 1' },
        { result: 'fiction, history', refreshed: true },
        { result: 'fiction, history' },
      ])
      expect(scopes).toHaveLength(3)
      expect(scopes[0]).not.toContain('books:delete')
      expect(scopes[1]).toContain('books:delete')
    })
  },
)
