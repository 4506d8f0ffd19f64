import { execFileSync, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { parse } from 'smol-toml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

const MAIN = join(ROOT, 'packages/create-portcullis/src/main.ts')
const ENTER = '\r'
const DOWN = '\x1b[B'
const CTRL_C = '\x03'

/** `script` of util-linux provides a terminal. */
function hasTerminal(): boolean {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux')
  } catch {
    return false
  }
}

describe.runIf(hasTerminal())('create-portcullis on a terminal', () => {
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-questions-'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Types each answer when its question has appeared. Returns the exit code and the output. */
  async function answer(
    answers: readonly (readonly [question: string, keys: string])[],
    args = '',
  ): Promise<{ code: number | null; output: string }> {
    const command = `stty cols 100 rows 30; ${process.execPath} ${MAIN} ${args}`
    const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: folder })
    const left = [...answers]
    let output = ''
    let seen = 0
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += stripVTControlCharacters(text)
      const [next] = left
      const at = next === undefined ? -1 : output.indexOf(next[0], seen)
      if (next === undefined || at === -1) return
      seen = at + next[0].length
      left.shift()
      child.stdin.write(next[1])
    })
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    expect(left, output).toEqual([])
    return { code, output }
  }

  test('shows each question, and repeats one after an invalid answer', async () => {
    const { code, output } = await answer([
      ['Directory', `notes${ENTER}`],
      ['What should it be?', ENTER],
      ['Identity provider', DOWN + ENTER],
      ['Issuer', `http://me.example${ENTER}`],
      ['must be an https URL', `${'\x7f'.repeat(17)}https://me.eu.auth0.com/${ENTER}`],
      ['Audience', `https://notes.example.com${ENTER}`],
      ['Origin', ENTER],
      ['Redis in development', ENTER],
      ['Created', ''],
    ])
    expect(code, output).toBe(0)
    const { vars } = parse(await readFile(join(folder, 'notes', 'wrangler.toml'), 'utf8'))
    const { ISSUERS } = vars as { readonly ISSUERS: string }
    expect(JSON.parse(ISSUERS)).toMatchObject([
      { issuer: 'https://me.eu.auth0.com/', audience: 'https://notes.example.com' },
    ])
  })

  test('shows no question that a flag answers', async () => {
    const flags = 'ready --kind gateway --idp none --origin https://a.example --redis local'
    const { code, output } = await answer([['Created', '']], flags)
    expect(code).toBe(0)
    expect(output).not.toMatch(/Identity provider|Redis in development/)
  })

  test('filters the providers by typed letters, and asks for no Redis of a gateway on Node', async () => {
    const { code, output } = await answer([
      ['Directory', `on-node${ENTER}`],
      ['What should it be?', DOWN + ENTER],
      ['Identity provider', 'keyc'],
      ['Keycloak', ENTER],
      ['Issuer', `https://login.example.com/realms/staff${ENTER}`],
      ['Audience', `orders${ENTER}`],
      ['Origin', ENTER],
      ['Created', ''],
    ])
    expect(code, output).toBe(0)
    expect(output).not.toContain('Redis in development')
    const variables = await readFile(join(folder, 'on-node', 'dev.env'), 'utf8')
    expect(variables).toContain('"issuer":"https://login.example.com/realms/staff"')
  })

  test('writes nothing after Ctrl-C', async () => {
    const before = await readdir(folder)
    const { code, output } = await answer([
      ['Directory', `cancelled${ENTER}`],
      ['What should it be?', CTRL_C],
    ])
    expect({ code }).toEqual({ code: 130 })
    expect(output).toContain('cancelled; nothing was written')
    expect(await readdir(folder)).toEqual(before)
  })
})
