#!/usr/bin/env node
/** `portcullis`: the operators' command line. Only `login` stores something on disk. */
import { writeSync } from 'node:fs'
import { runCommandLine } from './command-line.ts'
import { REFUSED } from './failure.ts'

const STDERR = 2

/** Ends the program with a sentence instead of a stack trace. */
function endWith(message: string): never {
  try {
    writeSync(STDERR, `error: ${message}\n`)
  } catch {
    // Nobody can read it: the exit code remains.
  }
  process.exit(REFUSED)
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of the pipe closed it: `portcullis audit query | head`.
  if (error.code === 'EPIPE') process.exit(0)
  endWith(`the output could not be written (${error.code ?? error.name})`)
})
process.stderr.on('error', () => process.exit(REFUSED))

try {
  process.cwd()
} catch {
  endWith('the current folder no longer exists; change to another one')
}
process.exitCode = await runCommandLine(process.argv.slice(2))
