/** Files with signing keys: `.dev.vars`, or a JWKS file for a deployment. */
import { existsSync, readFileSync } from 'node:fs'
import { parseSigningKeys, type SigningJwk } from '../../src/access/tokens/signing-keys.ts'
import { Misconfigured } from '../../src/errors.ts'
import { replace } from '../private-file.ts'

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

/** Returns the keys in the text of a file. Throws an `Error` without any part of a key. */
export function keysIn(text: string, path: string): readonly SigningJwk[] {
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
