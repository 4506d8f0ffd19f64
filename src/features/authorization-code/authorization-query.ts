/** Parses the query of a request to the authorization endpoint. */
import { Denied } from '../../errors.ts'
import { decodeFormText, type OAuthForm, parseForm } from '../authorization-server/form.ts'

/** What decides where an error goes, and what the client recognizes it by. */
const IDENTIFYING: Names = ['client_id', 'redirect_uri', 'state']
/** Also what decides about the language of a page. */
const SHOWN: Names = [...IDENTIFYING, 'ui_locales']

type Names = readonly (string | undefined)[]

export interface Query {
  readonly form: OAuthForm
  /** Why `form` has only the parameters that identify the client, and `ui_locales` if that is well-formed. */
  readonly mistake: Denied | undefined
}

/**
 * Parses a query. If another parameter is repeated or malformed, returns the mistake beside those that
 * identify the client, so that the error can go to its redirect URI (RFC 6749 section 4.1.2.1). Throws
 * `Denied` if one of these is ambiguous itself, or if the request is a pushed one, which has its parameters
 * elsewhere.
 */
export function parseQuery(query: string): Query {
  try {
    return { form: parseForm(query), mistake: undefined }
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    const pairs = query.split('&').map((pair) => ({ pair, name: nameOf(pair) }))
    if (pairs.some(({ name }) => name === 'request_uri')) throw error
    const parse = (names: Names) => {
      const chosen = pairs.filter(({ name }) => names.includes(name))
      return parseForm(chosen.map(({ pair }) => pair).join('&'))
    }
    let form = parse(IDENTIFYING)
    try {
      form = parse(SHOWN)
    } catch {}
    return { form, mistake: error }
  }
}

const nameOf = (pair: string): string | undefined => decodeFormText(pair.split('=', 1)[0] ?? '')
