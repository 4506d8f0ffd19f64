/** Files with signing keys: `.dev.vars`, or a JWKS file for a deployment. */
import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { parseSigningKeys, type SigningJwk } from '../../src/access/tokens/signing-keys.ts'
import { Misconfigured } from '../../src/errors.ts'
import { prepareDevVars, replace, setVar } from '../dev-vars.ts'

export interface KeyFile {
  readonly path: string
  /** What the user must do next, so that the keys are used. */
  readonly nextStep: string
  /**
   * Returns the keys, or undefined if there are none. Throws an `Error` without any part of a key.
   */
  read(): readonly SigningJwk[] | undefined
  /** Writes the keys atomically, readable only by the owner. */
  write(keys: readonly SigningJwk[]): Promise<void>
}

/** Creates access to a JWKS file (RFC 7517). */
export function jwksFile(path: string): KeyFile {
  return {
    path,
    nextStep: `npx wrangler secret put SIGNING_KEYS < ${/^[\w./-]+$/.test(path) ? path : `'${path}'`}`,
    read: () => (existsSync(path) ? keysIn(readFileSync(path, 'utf8'), path) : undefined),
    async write(keys) {
      replace(path, `${JSON.stringify({ keys })}\n`)
    },
  }
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

function keysIn(text: string, path: string): readonly SigningJwk[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    // Without the cause, because its message quotes the text.
    throw new Error(`${path} contains no JSON with keys`)
  }
  try {
    return parseSigningKeys(json)
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    throw new Error(`${path} contains no valid signing keys: ${error.mistakes.join('; ')}`)
  }
}
