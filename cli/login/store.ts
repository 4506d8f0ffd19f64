/**
 * The logins of the person at this machine, by gateway: `logins.json` in the user's folder of configurations, with mode
 * 0600. No other file of the command line has tokens.
 */
import { randomUUID } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { replace } from '../../dev/private-file.ts'
import { undecided, usage } from '../failure.ts'

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

/**
 * Runs `work` while no other command renews or ends a login: a refresh token may be used once.
 *
 * The lock is the only file of a folder. Its name is unique to its holder, and each step is one atomic call: the folder is
 * renamed to its place with the file in it, which fails if a file is there, and a lock is taken over by renaming
 * its file, which one command can do. So a command never removes the lock of another one. The holder writes
 * to the file again and again. A network file system may cache its time, but not what it contains when it is opened.
 */
export async function alone<Value>(
  work: () => Promise<Value>,
  env = process.env,
  { pollMs, beatMs, quietMs, waitMs } = LOCK_TIMES,
): Promise<Value> {
  const folder = join(configFolder(env), 'lock')
  const own = join(folder, randomUUID())
  mkdirSync(configFolder(env), { recursive: true, mode: FOLDER_MODE })
  let seen = ''
  for (let waited = 0, quiet = 0; ; waited += pollMs, quiet += pollMs) {
    const holder = holderOf(folder)
    if (holder === undefined && lock(folder, own)) break
    const state = `${holder?.file} ${holder?.beat}`
    if (state !== seen) quiet = 0
    seen = state
    // Left by a command that was killed: others write to it again and again, however long they take.
    if (holder !== undefined && quiet >= quietMs && succeeds(() => renameSync(holder.file, own)))
      break
    if (waited > waitMs)
      throw undecided('login_busy', `another command has held ${folder} for too long`)
    await wait(pollMs)
  }
  let beats = 0
  // It fails if another command has taken the lock over: `r+` creates no file.
  const beat = () => void succeeds(() => writeFileSync(own, `${++beats}`, { flag: 'r+' }))
  const timer = setInterval(beat, beatMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    // A process that was suspended may have lost the lock to another one, whose file keeps the folder.
    rmSync(own, { force: true })
    succeeds(() => rmdirSync(folder))
  }
}

/** Returns the file of the command that has the lock, and what it contains. Undefined: it seems to be free. */
function holderOf(folder: string): { file: string; beat: string } | undefined {
  try {
    const [name] = readdirSync(folder)
    if (name === undefined) return undefined
    const file = join(folder, name)
    return { file, beat: readFileSync(file, 'utf8') }
  } catch {
    return undefined
  }
}

/** Returns false if another command was faster. */
function lock(folder: string, own: string): boolean {
  const draft = `${folder}-${basename(own)}`
  mkdirSync(draft, { mode: FOLDER_MODE })
  try {
    writeFileSync(join(draft, basename(own)), '')
    // Windows renames to no folder that exists. This removes an empty one only.
    succeeds(() => rmdirSync(folder))
    return succeeds(() => renameSync(draft, folder))
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function succeeds(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
