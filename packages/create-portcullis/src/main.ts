#!/usr/bin/env node
/** `npm create portcullis@latest`, or `npm run create` in a checkout: creates a project that guards an API with Portcullis. */
import { relative } from 'node:path'
import { outro } from '@clack/prompts'
import manifest from '../package.json' with { type: 'json' }
import type { Answers } from './answers.ts'
import { complete } from './complete.ts'
import { Failure, usage } from './failure.ts'
import { HELP, parseOptions } from './options.ts'
import { ask } from './questions.ts'
import { type Written, writeProject } from './templates.ts'

async function main(argv: readonly string[]): Promise<void> {
  const { action, yes, json, flags } = parseOptions(argv)
  if (action !== 'create') {
    console.log(action === 'help' ? HELP : manifest.version)
    return
  }
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
  if (!yes && !isTerminal) {
    throw usage('there is no terminal to ask questions on; use --yes and flags, see --help')
  }
  const answers = complete(yes ? flags : await ask(flags), process.env)
  const written = writeProject(answers, process.cwd(), process.env)
  const next = nextSteps(written, answers)
  if (json) console.log(JSON.stringify({ ...written, kind: answers.kind, next }))
  else if (yes) console.log(`Created ${written.name} in ${written.directory}\n\n${next.join('\n')}`)
  else outro(`Created. Next:\n\n   ${next.join('\n   ')}`)
}

/** Returns shell commands. */
function nextSteps(
  { directory }: Written,
  { packageManager }: Pick<Answers, 'packageManager'>,
): readonly string[] {
  const path = relative(process.cwd(), directory)
  const word = /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
  return [
    ...(path === '' ? [] : [`cd ${word}`]),
    `${packageManager} install`,
    `${packageManager} start`,
  ]
}

function report(failure: Failure, json: boolean): void {
  const { code, message: detail } = failure
  const text = json ? JSON.stringify({ error: { code, detail } }) : `create-portcullis: ${detail}`
  process.stderr.write(`${text}\n`)
}

const argv = process.argv.slice(2)
try {
  await main(argv)
} catch (error) {
  if (!(error instanceof Failure)) throw error
  report(error, argv.includes('--json'))
  process.exitCode = error.exitCode
}
