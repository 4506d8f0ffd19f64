/** Access tokens that the gateways of a project on this machine accept. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { prepareDevVars } from '../dev-vars.ts'
import { type AccessTokenRequest, signAccessToken } from './access-token.ts'
import { defaultPublicUrl } from './settings.ts'

const NO_KEYS =
  'there are no signing keys. For `portcullis serve`, set SIGNING_KEYS and PUBLIC_URL as it has them, or ' +
  'name its file with --values. For `portcullis dev`, start it first: it writes .dev.vars'

export interface KeySource {
  /** Values of variables that `env` does not have. */
  readonly values?: Readonly<Record<string, string | undefined>> | undefined
  /** Whether `.dev.vars` is created if it is missing: only `portcullis dev` and `npm start` read it. */
  readonly mayCreate: boolean
}

/**
 * Signs a token with the active key of `SIGNING_KEYS`, for `PUBLIC_URL`. Both are read from `env` or the
 * values, or else from the `.dev.vars` in the folder `root`. Throws an `Error` of one line if there is no
 * usable key.
 */
export async function localToken(
  request: AccessTokenRequest,
  root: string,
  env: NodeJS.ProcessEnv,
  { values, mayCreate }: KeySource = { mayCreate: true },
): Promise<string> {
  const publicUrl = env.PUBLIC_URL || values?.PUBLIC_URL
  const keys = env.SIGNING_KEYS || values?.SIGNING_KEYS
  const file = join(root, '.dev.vars')
  const isGiven = Boolean(publicUrl && keys)
  const canRead = values === undefined && (mayCreate || existsSync(file))
  if (!isGiven && !canRead) throw new Error(NO_KEYS)
  const vars = isGiven ? undefined : await prepareDevVars(file, defaultPublicUrl())
  const signer = {
    PUBLIC_URL: publicUrl || (vars?.PUBLIC_URL ?? ''),
    SIGNING_KEYS: keys || (vars?.SIGNING_KEYS ?? ''),
  }
  try {
    return await signAccessToken(request, signer)
  } catch (cause) {
    throw new Error('SIGNING_KEYS is not a private JWK Set with an active key', { cause })
  }
}
