/**
 * The logins of the person at this machine, by gateway: `logins.json` in the user's folder of configurations, with mode
 * 0600. No other file of the command line has tokens.
 */
import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { replace } from '../../dev/private-file.ts'
import { Failure, UNDECIDED, usage } from '../failure.ts'

export interface Login {
  readonly issuer: string
  readonly clientId: string
  readonly tokenEndpoint: string
  readonly revocationEndpoint?: string | undefined
  readonly accessToken: string
  readonly refreshToken?: string | undefined
  /** Milliseconds since the epoch. Undefined: the issuer did not say. */
  readonly expiresAtMs?: number | undefined
  /** As the ID token or the access token names the person; for display only. */
  readonly subject?: string | undefined
  readonly name?: string | undefined
  readonly resource?: string | undefined
  /** Algorithms of ID tokens of the issuer. */
  readonly idTokenAlgorithms?: string[] | undefined
}

type Logins = Readonly<Record<string, Login>>

const OTHERS = 0o077
const FOLDER_MODE = 0o700
/** `waitMs`: longer than the two calls of a logout, of which each may take 15 s. */
const LOCK_TIMES = { pollMs: 50, beatMs: 1_000, quietMs: 5_000, waitMs: 40_000 }

/** Returns the folder: `portcullis` in `XDG_CONFIG_HOME`, or `~/.config`; on Windows in `APPDATA`. */
function configFolder(env: NodeJS.ProcessEnv = process.env): string {
  const base =
    process.platform === 'win32' && env.APPDATA
      ? env.APPDATA
      : env.XDG_CONFIG_HOME || join(homedir(), '.config')
  return join(base, 'portcullis')
}

const fileIn = (env: NodeJS.ProcessEnv) => join(configFolder(env), 'logins.json')

/** Returns the login for a gateway, by its origin. Throws a usage failure for a file that others may read. */
export const loginFor = (url: string, env: NodeJS.ProcessEnv = process.env): Login | undefined => {
  const logins = read(env)
  return Object.hasOwn(logins, url) ? logins[url] : undefined
}

export function saveLogin(url: string, login: Login | undefined, env = process.env): void {
  const { [url]: _, ...others } = read(env)
  mkdirSync(configFolder(env), { recursive: true, mode: FOLDER_MODE })
  const all = login === undefined ? others : { ...others, [url]: login }
  replace(fileIn(env), `${JSON.stringify(all, undefined, 2)}\n`)
}

function read(env: NodeJS.ProcessEnv): Logins {
  const file = fileIn(env)
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) return {}
  if (process.platform !== 'win32' && (stat.mode & OTHERS) !== 0)
    throw usage(`${file} has tokens, and other users may read it; run: chmod 600 ${file}`)
  try {
    const logins: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof logins === 'object' && logins !== null) return logins as Logins
  } catch {
    // Reported below.
  }
  throw usage(`${file} cannot be read; remove it, and log in again`)
}

/** Runs `work` while no other command renews or ends a login: a refresh token may be used once. */
export async function alone<Value>(
  work: () => Promise<Value>,
  env = process.env,
  { pollMs, beatMs, quietMs, waitMs } = LOCK_TIMES,
): Promise<Value> {
  const lock = join(configFolder(env), 'lock')
  const own = join(lock, randomUUID())
  mkdirSync(configFolder(env), { recursive: true, mode: FOLDER_MODE })
  let seenMs: number | undefined
  for (let waited = 0, quiet = 0; !tryLock(lock, own); waited += pollMs, quiet += pollMs) {
    if (waited > waitMs)
      throw new Failure(UNDECIDED, 'login_busy', `another command has held ${lock} for too long`)
    const changedMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs
    if (changedMs !== seenMs) quiet = 0
    seenMs = changedMs
    // Left by a command that was killed: others set its time again and again, however long they take.
    if (quiet >= quietMs) rmSync(lock, { recursive: true, force: true })
    await wait(pollMs)
  }
  const beat = setInterval(() => {
    try {
      if (existsSync(own)) utimesSync(lock, new Date(), new Date())
    } catch {
      // Another command has removed the lock.
    }
  }, beatMs)
  try {
    return await work()
  } finally {
    clearInterval(beat)
    // A process that was suspended may have lost the lock to another one.
    if (existsSync(own)) rmSync(lock, { recursive: true, force: true })
  }
}

function tryLock(lock: string, own: string): boolean {
  try {
    mkdirSync(lock)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  writeFileSync(own, '')
  return true
}
