/** Checks the providers at which users sign in with a browser. */

import { Misconfigured, Unavailable } from '../../src/errors.ts'
import type { WholeConfig } from '../../src/features/environment.ts'
import {
  type CallbackRules,
  callbackPathOf,
  namesItself,
} from '../../src/features/sign-in/callback.ts'
import { readClientSettings } from '../../src/features/sign-in/client-settings.ts'
import { textOf } from '../../src/problems/mistake.ts'
import { jsonIn } from '../json.ts'
import { type Finding, mistake, ok, warning } from './finding.ts'
import { githubMistake } from './github.ts'
import { request, shownUrl } from './request.ts'
import { type Client, clientMistake, type TokenEndpointReport } from './token-endpoint.ts'

const REMEDY = 'Write `issuer` in ISSUERS and ISSUER_CLIENTS exactly as the provider does.'

/** Checks each provider, at the same time. Names the URIs that it must accept. */
export function checkSignIn(config: WholeConfig): Promise<readonly Finding[]> {
  const providers = config.issuerClients.filter(({ signIn }) => signIn !== undefined)
  const isOnly = providers.length === 1
  return Promise.all(
    providers.map((client) =>
      providerFinding(client, isOnly, config).catch((error: unknown) => {
        // The findings of others must not be lost.
        if (error instanceof Unavailable)
          return mistake(
            `sign-in at ${client.issuer}`,
            'no key of this client signs now',
            'Register a new key at the provider, and replace the key in ISSUER_CLIENTS.',
          )
        if (!(error instanceof Misconfigured)) throw error
        const texts = error.found.map(textOf).join('; ')
        return mistake(`sign-in at ${client.issuer}`, texts, 'Correct ISSUER_CLIENTS.')
      }),
    ),
  )
}

async function providerFinding(
  client: Client,
  isOnly: boolean,
  config: WholeConfig,
): Promise<Finding> {
  const { issuer } = client
  const { publicUrl } = config
  const check = `sign-in at ${issuer}`
  const entry = config.issuers.find((one) => one.issuer === issuer) ?? { issuer }
  const settings = readClientSettings(client, entry, config.issuerClients.indexOf(client))
  const { preset, apiUrl, callback } = settings
  const rules = { issuer, isOnly, callback }
  if (preset === undefined) return openIdFinding(client, rules, publicUrl)
  const path = callbackPathOf({ ...rules, namesItself: false })
  const found = await githubMistake(client, apiUrl, publicUrl + path)
  return found === undefined
    ? acceptedFinding(check, publicUrl + path, { ...rules, namesItself: false })
    : mistake(check, found.seen, found.remedy)
}

async function openIdFinding(
  client: Client,
  rules: Omit<CallbackRules, 'namesItself'>,
  publicUrl: string,
): Promise<Finding> {
  const { issuer } = rules
  const check = `sign-in at ${issuer}`
  // OpenID Connect Discovery 1.0 section 4.
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await request(url)
  if (typeof answer === 'string') return mistake(check, `${url} ${answer}`, REMEDY)
  if (answer.status !== 200)
    return mistake(check, `${url} responds with status ${answer.status}`, REMEDY)
  const metadata = (jsonIn(answer.text) ?? {}) as Readonly<Record<string, unknown>>
  if (metadata.issuer !== issuer) {
    const seen = JSON.stringify(metadata.issuer) ?? 'no issuer'
    return mistake(check, `${url} has ${seen}, expected ${JSON.stringify(issuer)}`, REMEDY)
  }
  for (const name of ['authorization_endpoint', 'token_endpoint']) {
    const endpoint = metadata[name]
    if (typeof endpoint !== 'string' || !isAtLeastAsSafe(endpoint, issuer))
      return mistake(
        check,
        `${url} has no ${name} with an https URL`,
        'Users can sign in only at an OpenID Provider with the authorization code flow.',
      )
    const { username, password } = new URL(endpoint)
    if (username !== '' || password !== '')
      return mistake(
        check,
        `the ${name} in ${url} has credentials in its URL`,
        'Correct the metadata of the provider: no client sends such credentials.',
      )
  }
  const methods = metadata.code_challenge_methods_supported
  if (Array.isArray(methods) && !methods.includes('S256'))
    return mistake(
      check,
      `${url} does not list S256 in code_challenge_methods_supported`,
      'Enable PKCE with S256 for the client at the provider.',
    )
  const all = { ...rules, namesItself: namesItself(metadata) }
  const redirectUri = publicUrl + callbackPathOf(all)
  const endpoint = String(metadata.token_endpoint)
  const { mistake: refused, ...report } = await clientMistake(endpoint, client, redirectUri)
  if (refused !== undefined) return mistake(check, refused.seen, refused.remedy)
  const failed = failureIn(report)
  if (failed !== undefined)
    return warning(
      check,
      `${shownUrl(endpoint)} ${failed}`,
      'Correct the token endpoint of the provider, or the way to it: no login can end without it.',
    )
  const after =
    metadata.end_session_endpoint === undefined ? '' : ` and ${publicUrl}/oauth/signed-out`
  return acceptedFinding(check, redirectUri + after, all)
}

/** The statuses of a token endpoint that refuses a code (RFC 6749 section 5.2), or a caller for now. */
const REFUSALS: readonly number[] = [400, 401, 403, 429]

/** Returns why a token endpoint is not usable. Undefined: it refused the code. */
function failureIn({ answer, error }: Omit<TokenEndpointReport, 'mistake'>): string | undefined {
  if (typeof answer === 'string') return answer
  if (REFUSALS.includes(answer.status)) return undefined
  const status = `responds with status ${answer.status}`
  if (answer.status >= 300) return status
  // Some providers send errors with status 200.
  return error === undefined ? `${status} to a code that does not exist` : undefined
}

/** Names the URIs, and warns of a callback that several providers share. */
function acceptedFinding(
  check: string,
  uris: string,
  { isOnly, callback, namesItself }: CallbackRules,
): Finding {
  const accepts = `the provider must accept the redirect URI ${uris}`
  if (isOnly || callback !== 'shared' || namesItself) return ok(check, accepts)
  return warning(
    check,
    `${accepts}; it does not name itself in responses, so another provider could mix up logins`,
    'Set `"callback": "own"` in signIn, and register the redirect URI that this command then names.',
  )
}

/** Only a provider on this machine, in development, has URLs without TLS. */
const isAtLeastAsSafe = (url: string, issuer: string): boolean =>
  ['https:', URL.parse(issuer)?.protocol === 'http:' ? 'http:' : 'https:'].some(
    (protocol) => URL.parse(url)?.protocol === protocol,
  )
