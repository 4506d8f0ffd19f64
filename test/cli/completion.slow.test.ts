import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { testInLong } from '../harness/long.ts'
import { isInstalled } from '../harness/process.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { CLI, runCli } from './command-line.ts'

/** Returns what the shells' scripts get for a line. The last word may be empty. */
async function suggestionsFor(words: string[], cwd = '/'): Promise<readonly string[]> {
  const { code, stdout } = await runCli(['complete', '--', ...words], { cwd })
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  expect(lines.pop()).toBe(':4')
  return lines.map((line) => line.split('\t')[0] ?? '')
}

describe('suggestions', () => {
  testInLong.each([
    [['reli'], []],
    [['rel'], ['relations']],
    [
      ['api-keys', ''],
      ['create', 'list', 'show', 'lookup', 'update', 'rotate', 'revoke', 'help'],
    ],
    [['api-keys', 'rotate', '--gr'], ['--grace']],
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
    [
      ['audit', 'query', '--decision', ''],
      ['allow', 'deny', 'error'],
    ],
    [['idp', 'show', 'ok'], ['okta']],
    [['idp', 'doctor', '-', '--preset', 'key'], ['keycloak']],
    [
      ['token', 'mint', '--format', ''],
      ['jwt', 'opaque'],
    ],
  ])('for %j', async (words, expected) => {
    expect(await suggestionsFor(words)).toEqual(expected)
  })

  test('for a role and a limit are the names in the policy of the project', async () => {
    const project = await makeNodeProject(`
      import { definePolicy } from 'portcullis'
      const slow = { limit: 1, windowSeconds: 1, by: 'subject', onUnavailable: 'deny' }
      export default definePolicy({
        roles: { guest: ['a:read'], host: ['a:*'] },
        limits: { slow },
        routes: [{ method: 'GET', path: '/a', permission: 'a:read', limits: ['slow'] }],
      })`)
    const { folder: cwd } = project
    expect(await suggestionsFor(['token', 'sign', '--role', 'g'], cwd)).toEqual(['guest'])
    expect(await suggestionsFor(['limits', 'override', ''], cwd)).toEqual(['slow'])
    await project.close()
  })

  test('for an empty line are all visible commands, without the one for scripts', async () => {
    const names = await suggestionsFor([''])
    expect(names).toEqual(expect.arrayContaining(['audit', 'clients', 'completion']))
    expect(names.filter((name) => name.startsWith('complete'))).toEqual([])
  })
})

test('another shell is refused', async () => {
  const { code, stdout, stderr } = await runCli(['completion', 'tcsh'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('Allowed choices are bash, zsh, fish')
})

const PROGRAM = `${process.execPath} ${CLI}`

/** Prints the words of a line instead of running it, except the calls of the scripts. */
const STAND_IN = `portcullis() {
  if [[ $1 == complete || $1 == completion ]]; then ${PROGRAM} "$@"
  else printf '<%s>\\n' "$@"; fi
}
`
const START = {
  bash: `${STAND_IN}source <(portcullis completion bash)\n`,
  zsh: `${STAND_IN}autoload -Uz compinit; compinit -D -u; source <(portcullis completion zsh)
zle-line-init() { print -r LINE-READY }; zle -N zle-line-init; bindkey '^I' complete-word
`,
  fish: `function portcullis; ${PROGRAM} $argv; end\n${PROGRAM} completion fish | source\n`,
}
type Shell = keyof typeof START

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-completion-'))
  await writeFile(join(folder, 'public-keys.json'), '{}')
  for (const [shell, script] of Object.entries(START))
    await writeFile(join(folder, `start.${shell}`), script)
})
/** The command of an injection would create this file. */
beforeEach(() => rm(join(folder, 'ran'), { force: true }))
afterAll(() => rm(folder, { recursive: true, force: true }))

const hasRun = () => existsSync(join(folder, 'ran'))

/**
 * Starts a shell without start files of the user. Returns its output after `input`. Prompts and output go
 * into one pipe, because two pipes have no order between them.
 */
function outputOf(shell: Shell, args: readonly string[], input = ''): Promise<string> {
  const child = spawn('sh', ['-c', 'exec "$0" "$@" 2>&1', shell, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, INPUTRC: '/dev/null', TERM: 'dumb' },
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stdin.end(input)
  return new Promise((resolve) => child.once('close', () => resolve(output)))
}

describe.runIf(isInstalled('bash'))('in bash, the tab key', () => {
  const typed = (keys: string): Promise<string> =>
    outputOf('bash', ['--norc', '--noprofile', '-i'], `source start.bash\n${keys}\nexit\n`)

  test.each([
    ['a command', 'portcullis rel\t', ['relations']],
    ['a subcommand', 'portcullis api-keys rot\t', ['api-keys', 'rotate']],
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
    expect(hasRun()).toBe(false)
  })
})

describe.runIf(isInstalled('zsh'))('in zsh, the tab key', () => {
  /**
   * The line editor of zsh needs a terminal, which its own module provides. Keys that are typed
   * before the editor reads them would be edited by the terminal instead. The tab key
   * completes only: by default, zsh itself also runs substitutions of the word before it.
   */
  const typed = (keys: string): Promise<string> =>
    outputOf('zsh', [
      '-fc',
      `zmodload zsh/zpty; zpty shell zsh -f -i; zpty -w shell 'source ./start.zsh'
zpty -r -m shell line '*LINE-READY*'
zpty -w -n shell $1; zpty -w -n shell $'\\n'; zpty -w shell exit
while zpty -r shell line; do print -rn -- $line; done`,
      'typed',
      keys,
    ])

  testInLong.each([
    ['a command', 'portcullis rel\t', ['relations']],
    ['a subcommand', 'portcullis api-keys rot\t', ['api-keys', 'rotate']],
    ['an option', 'portcullis audit query --req\t', ['audit', 'query', '--request-id']],
    ['a choice', 'portcullis revoke cl\talice', ['revoke', 'client', 'alice']],
  ])('completes %s', async (_, keys, words) => {
    const output = await typed(keys)
    expect(output).toContain(`\n${words.map((word) => `<${word}>`).join('\r\n')}\r\n`)
  })

  test('runs nothing that is in the line', async () => {
    const lines = ['portcullis revoke subject "$(touch ran)" ', 'portcullis --x$(touch ran)=']
    for (const line of lines) await typed(`${line}\t\u0015`)
    expect(hasRun()).toBe(false)
  })
})

describe.runIf(isInstalled('fish'))('in fish, the tab key', () => {
  const suggested = (line: string): Promise<string> =>
    outputOf('fish', ['--no-config', '-c', 'source start.fish; complete -C $argv[1]', line])

  testInLong.each([
    ['a command', 'portcullis rel', 'relations'],
    ['a subcommand', 'portcullis api-keys rot', 'rotate'],
    ['an option', 'portcullis audit query --req', '--request-id'],
    ['a choice', 'portcullis revoke cl', 'client'],
  ])('completes %s', async (_, line, expected) => {
    const lines = (await suggested(line)).trimEnd().split('\n')
    expect(lines.map((one) => one.split('\t')[0])).toEqual([expected])
  })

  test('runs nothing that is in the line', async () => {
    for (const line of ['portcullis revoke subject (touch ran) ', 'portcullis --x(touch ran)='])
      await suggested(line)
    expect(hasRun()).toBe(false)
  })
})
