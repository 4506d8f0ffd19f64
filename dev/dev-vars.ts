/**
 * `.dev.vars`: the secrets and settings of local gateways of this checkout. It is created on first
 * use, is readable only by its owner, and is ignored by git: `.gitignore` names it. A developer may add variables to it.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { type KeyFile, keysIn } from './keys/key-file.ts'
import { DEFAULT_SIGNING_ALGORITHM, generateSigningKey } from './keys/key-set.ts'
import { create, replace } from './private-file.ts'

const REST_TOKEN_BYTES = 32
/** 256 bits (ASVS 11.5.1). */
const CLIENT_SECRET_BYTES = 32
const HEADER =
  '# Written by `npm start`, for this machine only. You may add variables; do not commit it.\n'

const NAMES = [
  'SIGNING_KEYS',
  'UPSTASH_REDIS_REST_TOKEN',
  'PUBLIC_URL',
  'PORTCULLIS_CLIENT_ID',
  'PORTCULLIS_CLIENT_SECRET',
] as const

/** Variables that every local gateway needs. Other variables are kept unchanged. */
export interface DevVars {
  /** Private JWKS (RFC 7517) as JSON. `npm run keys` changes it. */
  readonly SIGNING_KEYS: string
  /** The token that the local Upstash REST server requires. */
  readonly UPSTASH_REDIS_REST_TOKEN: string
  /** Issuer and audience of the tokens of this checkout's gateways. */
  readonly PUBLIC_URL: string
  /** The operator's client of this checkout, which the command line authenticates as. */
  readonly PORTCULLIS_CLIENT_ID: string
  readonly PORTCULLIS_CLIENT_SECRET: string
  readonly [name: string]: string | undefined
}

/**
 * Reads the file at `path`. Creates missing variables and writes them to it: a new ES256 key, a
 * random token, `publicUrl`, and an operator's client. Keeps an existing `PUBLIC_URL`.
 */
export async function prepareDevVars(path: string, publicUrl: string): Promise<DevVars> {
  if (!existsSync(path)) {
    ignoreInGit(path)
    create(path, HEADER + lines(await freshVars(publicUrl)))
  }
  const text = readFileSync(path, 'utf8')
  const found = parseEnv(text) as Partial<DevVars>
  if (NAMES.every((name) => found[name])) return found as DevVars
  const missing = Object.entries(await freshVars(publicUrl)).filter(([name]) => !found[name])
  const additions = Object.fromEntries(missing) as Record<string, string>
  replace(path, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${lines(additions)}`)
  return { ...found, ...additions } as DevVars
}

/** Adds a file with secrets to the `.gitignore` beside it, unless a line names it. */
function ignoreInGit(path: string): void {
  const name = basename(path)
  const file = join(dirname(path), '.gitignore')
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const names = [name, `/${name}`, `${name}*`, `/${name}*`]
  if (text.split('\n').some((line) => names.includes(line.trim()))) return
  appendFileSync(file, `${text === '' || text.endsWith('\n') ? '' : '\n'}${name}\n`)
}

/** Sets `PUBLIC_URL`, which must exist in the file at `path`. Leaves other variables unchanged. */
export function setPublicUrl(path: string, publicUrl: string): void {
  setVar(path, 'PUBLIC_URL', publicUrl)
}

/**
 * Sets a variable in the file at `path`, and leaves the others unchanged. Throws if the file does
 * not contain it, or contains it in an unsupported form.
 */
function setVar(path: string, name: string, value: string): void {
  const text = readFileSync(path, 'utf8')
  // A quoted value may span several lines.
  const assignment = new RegExp(`^${name}=(?:'[^']*'|"[^"]*"|\`[^\`]*\`|.*)$`, 'gm')
  const changed = text.replace(assignment, () => line(name, value))
  if (parseEnv(changed)[name] !== value) throw new Error(`${path} has no line ${name}=`)
  replace(path, changed)
}

/**
 * Creates access to the variable SIGNING_KEYS of `.dev.vars`. A new file gets all other variables
 * too.
 */
export function devVarsFile(path: string, publicUrl: string): KeyFile {
  return {
    path,
    nextStep: 'npm start (restart it if it runs)',
    read() {
      const text = existsSync(path) ? parseEnv(readFileSync(path, 'utf8')).SIGNING_KEYS : undefined
      return text ? keysIn(text, path) : undefined
    },
    async write(keys) {
      await prepareDevVars(path, publicUrl)
      setVar(path, 'SIGNING_KEYS', JSON.stringify({ keys }))
    },
  }
}

/**
 * Formats one variable of a `.env` file, quoted so that the value is preserved (`#`, spaces, new
 * lines). Throws for a value that no kind of quotes can contain.
 */
export function line(name: string, value: string): string {
  const quote = ["'", '`'].find((mark) => !value.includes(mark))
  if (quote === undefined || value.includes('\r') || value.endsWith('\\')) {
    throw new Error(`${name} contains characters that are not possible in an environment file`)
  }
  return `${name}=${quote}${value}${quote}`
}

async function freshVars(publicUrl: string): Promise<Record<(typeof NAMES)[number], string>> {
  const key = await generateSigningKey(DEFAULT_SIGNING_ALGORITHM)
  return {
    SIGNING_KEYS: JSON.stringify({ keys: [key] }),
    UPSTASH_REDIS_REST_TOKEN: randomBytes(REST_TOKEN_BYTES).toString('base64url'),
    PUBLIC_URL: publicUrl,
    PORTCULLIS_CLIENT_ID: randomUUID(),
    PORTCULLIS_CLIENT_SECRET: `pcs_${randomBytes(CLIENT_SECRET_BYTES).toString('base64url')}`,
  }
}

function lines(vars: Record<string, string>): string {
  return Object.entries(vars)
    .map(([name, value]) => `${line(name, value)}\n`)
    .join('')
}
