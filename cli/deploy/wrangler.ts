/** Runs the project's own wrangler, without prompts, telemetry and update checks. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { Failure, refused, usage } from '../failure.ts'

const PROGRAM = join('node_modules', 'wrangler', 'bin', 'wrangler.js')
const KEPT_LINES = 12

const QUIET = {
  CI: 'true',
  NO_COLOR: '1',
  FORCE_COLOR: '0',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
}

export interface WranglerOptions {
  /** The folder of the project. */
  readonly cwd: string
  /** Variables besides those of this process, such as the credentials. */
  readonly env: Readonly<Record<string, string>>
  /** An existing folder of this run, for wrangler's report and its logs. */
  readonly scratch: string
  /** Texts that an error message must not contain. */
  readonly secrets: readonly string[]
}

/** The report of wrangler about a command, in the form of `WRANGLER_OUTPUT_FILE_PATH`. */
export interface Report {
  readonly type?: string
  readonly version_id?: string
}

/** Runs a command of wrangler. Throws a {@link Failure} with wrangler's own message if it fails. */
export type RunWrangler = (args: readonly string[]) => Promise<Report>

/** Creates a function that runs wrangler. Throws a usage failure if it is not installed. */
export function createWrangler({ cwd, env, scratch, secrets }: WranglerOptions): RunWrangler {
  const program = programAbove(cwd)
  const reports = join(scratch, 'report.ndjson')
  return async function runWrangler(args) {
    const child = spawn(process.execPath, [program, ...args], {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        ...QUIET,
        ...env,
        WRANGLER_OUTPUT_FILE_PATH: reports,
        WRANGLER_LOG_PATH: join(scratch, 'logs'),
      },
    })
    let output = ''
    const keep = (chunk: Buffer) => {
      output += chunk.toString()
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    if (code === 0) return lastReport(reports)
    const command = args.filter((word) => !word.startsWith('-')).slice(0, 2)
    const why = redacted(complaintIn(output), secrets)
    throw refused('wrangler_failed', `wrangler ${command.join(' ')}: ${why}`)
  }
}

function programAbove(folder: string): string {
  const program = join(folder, PROGRAM)
  if (existsSync(program)) return program
  const parent = dirname(folder)
  if (parent === folder) {
    throw usage('wrangler is not installed; add it with `npm install --save-dev wrangler`')
  }
  return programAbove(parent)
}

function lastReport(file: string): Report {
  if (!existsSync(file)) return {}
  const line = readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) ?? ''
  return line === '' ? {} : (JSON.parse(line) as Report)
}

/** Returns the error message in wrangler's output, on one line. */
function complaintIn(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .filter((line) => !/Logs were written|If you think this is a bug/.test(line))
  const first = lines.findIndex((line) => line.includes('[ERROR]'))
  const text = lines
    .slice(first < 0 ? -KEPT_LINES : first, first < 0 ? undefined : first + KEPT_LINES)
    .join(' ')
  return text
    .replaceAll(/✘|\[ERROR\]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** Replaces the secrets in a text. */
function redacted(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== '')
    .reduce((shown, secret) => shown.replaceAll(secret, '…'), text)
}
