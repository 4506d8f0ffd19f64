#!/usr/bin/env node
/** `portcullis`: the operators' command line. Only `login` stores something on disk. */
import { runCommandLine } from './command-line.ts'

// The reader of the pipe closed it: `portcullis audit query | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})
process.exitCode = await runCommandLine(process.argv.slice(2))
