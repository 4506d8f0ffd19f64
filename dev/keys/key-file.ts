/** Where a set of signing keys is kept: `.dev.vars`, or a JWKS file for a deployment. */
import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { Misconfigured } from '../../src/errors.ts'
import { parseSigningKeys, type SigningJwk } from '../../src/tokens/signing-keys.ts'
import { prepareDevVars, replace, setVar } from '../dev-vars.ts'

export interface KeyFile {
  readonly path: string
  /** What has to be done next for the keys to be used. */
  readonly nextStep: string
  /** Undefined if there are none yet. Throws an `Error` that repeats no part of a key. */
  read(): readonly SigningJwk[] | undefined
  /** Readable by its owner only, written whole or not at all. */
  write(keys: readonly SigningJwk[]): Promise<void>
}

/** A JWKS file (RFC 7517). */
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

/** The variable SIGNING_KEYS of `.dev.vars`; other variables of a new file are made up. */
export function devVarsFile(path: string, publicUrl: string): KeyFile {
  return {
    path,
    nextStep: 'npm start, again if it runs',
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
    // Without the cause, which quotes the text.
    throw new Error(`${path} holds no JSON where the keys should be`)
  }
  try {
    return parseSigningKeys(json)
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    throw new Error(`${path} holds no good signing keys: ${error.mistakes.join('; ')}`)
  }
}
