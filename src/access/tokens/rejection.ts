import { Denied } from '../../errors.ts'
import type { Check } from '../../problems/checks.ts'
import type { OAuthErrorCode, RejectionDetail, Signer } from '../../problems/reasons.ts'

/** Creates the refusal of a token. `cause` never leaves the process. */
export function rejected(check: Check<'token_rejected'>, options?: ErrorOptions): Denied {
  return new Denied({ code: 'token_rejected', check }, options)
}

/**
 * Returns the result of `check`, a check of a token that is authentic. Its refusals name the signer: the
 * token is no guess, and its sender may only be misconfigured.
 */
export async function ofSigner<Value>(
  signer: Signer,
  check: () => Value | Promise<Value>,
): Promise<Value> {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') throw error
    throw new Denied({ ...error.denial, signer }, { cause: error.cause })
  }
}

/** The longest text of a value in an audit event. */
const MAX_SHOWN_CHARS = 200

/** Returns a value of a token or of the configuration as printable ASCII of at most 200 characters. */
export function shown(value: unknown): string {
  // Longer texts are cut before they are escaped, because a sender chooses their length.
  const text = typeof value === 'string' ? value.slice(0, MAX_SHOWN_CHARS) : value
  const json = JSON.stringify(text) ?? 'none'
  const ascii = json.slice(0, 2 * MAX_SHOWN_CHARS).replace(UNPRINTABLE, escaped)
  return ascii.length <= MAX_SHOWN_CHARS ? ascii : `${ascii.slice(0, MAX_SHOWN_CHARS - 3)}...`
}

const UNPRINTABLE = /[^\x20-\x7e]/g
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Creates the refusal of a token, with what the check found and expected. */
export function rejectedFor(
  check: 'alg' | 'typ' | 'iss' | 'aud',
  seen: unknown,
  expected: readonly string[],
): Denied {
  const detail: RejectionDetail = {
    seen: shown(seen),
    expected: shown(expected),
    verified: check === 'aud' || check === 'typ',
  }
  return new Denied({ code: 'token_rejected', check, detail })
}

/**
 * Creates the refusal of a request to `/oauth/*`. `error` goes to the client. `check` names the
 * precise reason and goes to the audit trail only.
 */
export function oauthRefused(
  error: OAuthErrorCode,
  check: Check<'oauth_refused'>,
  options?: ErrorOptions,
): Denied {
  return new Denied({ code: 'oauth_refused', error, check }, options)
}
