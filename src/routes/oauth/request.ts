/** Parses an HTTP request into a request of the authorization server. */
import type { Context } from 'hono'
import { Denied } from '../../errors.ts'
import {
  bodyOf,
  clientAddressOf,
  type GatewayVariables,
  setPrincipal,
} from '../../middleware/context.ts'
import { wholeOf } from '../../middleware/validate.ts'
import { waitUntilOf } from '../../middleware/wait-until.ts'
import { type OAuthForm, parseForm } from '../../oauth/form.ts'
import type { OAuthRequest } from '../../oauth/token-endpoint.ts'
import { oauthRefused } from '../../tokens/rejection.ts'

export type OAuthContext = Context<{ Variables: GatewayVariables }>

/** Forms are UTF-8 (RFC 6749 appendix B). Servers read other charsets differently. */
const FORM_TYPE =
  /^application\/x-www-form-urlencoded[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i
/**
 * A form is one or two packets. Until it has been read, the caller is not authenticated and no
 * limit applies. A client that could send it slowly would use up the isolate's capacity (see
 * `shedLoad`) with few requests.
 */
const FORM_TIMEOUT_MS = 3_000

/**
 * Reads a request. Only parameters in the body are accepted. A query is refused, because queries
 * are written to logs (RFC 6749 section 2.3.1). Throws `Denied`. Needs `limitBody` and
 * `clientAddress` before it.
 */
export async function oauthRequestOf(c: OAuthContext): Promise<OAuthRequest> {
  return {
    method: c.req.method,
    url: c.req.url,
    authorization: c.req.header('Authorization'),
    dpop: c.req.header('DPoP'),
    form: await formOf(c),
    address: clientAddressOf(c),
    identify: (actor) => setPrincipal(c, actor),
    waitUntil: waitUntilOf(c),
  }
}

async function formOf(c: OAuthContext): Promise<OAuthForm> {
  if (c.req.url.includes('?')) throw oauthRefused('invalid_request', 'query')
  const encoding = c.req.header('Content-Encoding') ?? 'identity'
  if (!FORM_TYPE.test(c.req.header('Content-Type') ?? '') || encoding !== 'identity')
    throw oauthRefused('invalid_request', 'content_type')
  const bytes = await wholeOf(bodyOf(c), FORM_TIMEOUT_MS)
  try {
    return parseForm(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    if (error instanceof Denied) throw error
    throw oauthRefused('invalid_request', 'form_encoding', { cause: error })
  }
}
