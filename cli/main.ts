#!/usr/bin/env node
/** `portcullis`: the operators' command line. Only `login` stores something on disk. */
import { writeSync } from 'node:fs'
import { runCommandLine } from './command-line.ts'
import { REFUSED } from './failure.ts'

const STDERR = 2
const isJson = process.argv.includes('--json')

/** Ends the program with a sentence instead of a stack trace. */
function endWith(code: string, detail: string): never {
  try {
    writeSync(
      STDERR,
      isJson ? `${JSON.stringify({ error: { code, detail } })}\n` : `portcullis: ${detail}\n`,
    )
  } catch {
    // It cannot be written either: the exit code remains.
  }
  process.exit(REFUSED)
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of the pipe closed it: `portcullis audit query | head`.
  if (error.code === 'EPIPE') process.exit(0)
  endWith('output_lost', `the output could not be written (${error.code ?? error.name})`)
})
// Messages of failures are lost then. The exit code remains.
process.stderr.on('error', () => {})

try {
  process.cwd()
} catch {
  endWith('folder_lost', 'the current folder no longer exists; change to another one')
}
process.exitCode = await runCommandLine(process.argv.slice(2))
