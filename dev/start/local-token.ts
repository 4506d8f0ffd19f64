/** Access tokens that the gateways of a project on this machine accept. */
import { join } from 'node:path'
import { prepareDevVars } from '../dev-vars.ts'
import { type AccessTokenRequest, signAccessToken } from './access-token.ts'
import { defaultPublicUrl } from './settings.ts'

/**
 * Signs a token with the active key of `SIGNING_KEYS`, for `PUBLIC_URL`. Both are read from `env`,
 * or else from the `.dev.vars` in the folder `root`, which is created if it is missing. Throws an
 * `Error` of one line if there is no usable key.
 */
export async function localToken(
  request: AccessTokenRequest,
  root: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const vars = await prepareDevVars(join(root, '.dev.vars'), defaultPublicUrl())
  const signer = {
    PUBLIC_URL: env.PUBLIC_URL || vars.PUBLIC_URL,
    SIGNING_KEYS: env.SIGNING_KEYS || vars.SIGNING_KEYS,
  }
  try {
    return await signAccessToken(request, signer)
  } catch (cause) {
    throw new Error('SIGNING_KEYS is not a private JWK Set with an active key', { cause })
  }
}
