/**
 * Runs schemathesis, which generates requests from an OpenAPI document and validates the responses.
 */
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { usualOrLong } from '../../harness/long.ts'
import { createPythonEnvironment } from '../../harness/python.ts'

const VERSION = '4.32.5'
const FOLDER = join(tmpdir(), `portcullis-schemathesis-${VERSION}`)
const PROGRAM = join(FOLDER, 'bin', 'schemathesis')
/** Random requests for each operation, in addition to the ones that cover its schema. */
const MAX_EXAMPLES = usualOrLong(2, 10)

/**
 * Installs schemathesis in its own folder below the system's temporary folder. Returns the reason
 * if that failed.
 */
export function installSchemathesis(): string | undefined {
  if (existsSync(PROGRAM)) return undefined
  try {
    createPythonEnvironment(FOLDER, `schemathesis==${VERSION}`)
    return undefined
  } catch (error) {
    return (error as Error).message.trim().split('\n').at(-1)
  }
}

export interface Judgement {
  /** 0 if schemathesis found no defect. */
  readonly code: number | null
  readonly output: string
}

/** A text that is longer than its schema permits can also be longer than a body may be. */
const SETTINGS = `[checks]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "429"]
`

/** Runs schemathesis against `url`. `args` select the calls and the credentials. */
export function runSchemathesis(url: string, args: readonly string[]): Promise<Judgement> {
  const settings = join(FOLDER, 'portcullis.toml')
  writeFileSync(settings, SETTINGS)
  const child = spawn(
    PROGRAM,
    [
      ...['--config-file', settings],
      ...['run', `${url}/-/openapi.json`, '--url', url, '--phases', 'examples,coverage,fuzzing'],
      ...['--checks', 'all', '--max-examples', String(MAX_EXAMPLES), '--seed', '20261120'],
      '--continue-on-failure',
      // A JSON Schema cannot express "one of the trusted issuers" or "an address".
      ...['--exclude-checks', 'positive_data_acceptance', '--warnings', 'off', ...args],
    ],
    { cwd: FOLDER, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}
