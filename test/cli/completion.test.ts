import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'
import { runCli } from './command-line.ts'

/** Returns what the shells' scripts get for a line. The last word may be empty. */
async function suggestionsFor(...words: string[]): Promise<readonly string[]> {
  const { code, stdout } = await runCli(['complete', '--', ...words])
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  expect(lines.pop()).toBe(':4')
  return lines.map((line) => line.split('\t')[0] ?? '')
}

describe('suggestions', () => {
  test.each([
    [['reli'], []],
    [['rel'], ['relations']],
    [
      ['apikeys', ''],
      ['create', 'list', 'rotate', 'disable', 'help'],
    ],
    [['apikeys', 'rotate', '--gr'], ['--grace']],
    [
      ['revoke', 's'],
      ['session', 'subject'],
    ],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['comp'], ['completion']],
    [['clients', 'create', '--jwks', ''], []],
  ])('for %j', async (words, expected) => {
    expect(await suggestionsFor(...words)).toEqual(expected)
  })

  test('for an empty line are all visible commands, without the one for scripts', async () => {
    const names = await suggestionsFor('')
    expect(names).toEqual(expect.arrayContaining(['audit', 'clients', 'completion']))
    expect(names.filter((name) => name.startsWith('complete'))).toEqual([])
  })
})

test.each(['zsh', 'fish'])(
  'there is a script for %s, which calls the command line',
  async (shell) => {
    const { code, stdout, stderr } = await runCli(['completion', shell])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('portcullis complete -- ')
  },
)

test('another shell is refused', async () => {
  const { code, stdout, stderr } = await runCli(['completion', 'tcsh'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('Allowed choices are bash, zsh, fish')
})

const hasBash = existsSync('/bin/bash')

describe.runIf(hasBash)('in bash, the tab key', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-completion-'))
    await writeFile(join(folder, 'public-keys.json'), '{}')
    await writeFile(
      join(folder, 'start'),
      `calls() { printf '<%s>\\n' "$@"; }
portcullis() {
  if [[ $1 == complete || $1 == completion ]]; then ${process.execPath} ${join(ROOT, 'cli/main.ts')} "$@"
  else calls "$@"; fi
}
source <(portcullis completion bash)
`,
    )
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Types keys into an interactive bash without start files. Returns its output. */
  function typed(keys: string): Promise<string> {
    const shell = spawn('/bin/bash', ['--norc', '--noprofile', '-i'], {
      cwd: folder,
      env: { PATH: '/usr/bin:/bin', HOME: folder, INPUTRC: '/dev/null', TERM: 'dumb' },
    })
    let output = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    shell.stdin.end(`source ./start\n${keys}\nexit\n`)
    return new Promise((resolve) => shell.once('close', () => resolve(output)))
  }

  test.each([
    ['a command', 'portcullis rel\t', ['relations']],
    ['a subcommand', 'portcullis apikeys rot\t', ['apikeys', 'rotate']],
    ['an option', 'portcullis audit query --req\t', ['audit', 'query', '--request-id']],
    ['a choice', 'portcullis revoke cl\talice', ['revoke', 'client', 'alice']],
    [
      'a file after an option that has no suggestions',
      'portcullis clients create --jwks pub\t',
      ['clients', 'create', '--jwks', 'public-keys.json'],
    ],
  ])('completes %s', async (_, keys, words) => {
    const output = await typed(keys)
    expect(output).toContain(`\n${words.map((word) => `<${word}>`).join('\n')}\n`)
  })

  test('lists several commands', async () => {
    expect(await typed('portcullis revo\t\t\u0015')).toMatch(/revocations\s+revoke/)
  })

  test('runs nothing that is in the line', async () => {
    await typed('portcullis revoke subject "$(touch ran)" `touch ran` \t\t\u0015')
    await typed('portcullis revoke subject ;touch ran;portcullis re\t\t\u0015')
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })
})
