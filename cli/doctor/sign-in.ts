/** Checks the providers at which users sign in with a browser. */

import type { WholeConfig } from '../../src/features/environment.ts'
import {
  type CallbackRules,
  callbackPathOf,
  namesItself,
} from '../../src/features/sign-in/callback.ts'
import { type Finding, mistake, ok, warning } from './finding.ts'
import { jsonIn, request } from './request.ts'

const REMEDY = 'Write `issuer` in ISSUERS and ISSUER_CLIENTS exactly as the provider does.'

/** Checks the metadata of each provider, at the same time. Names the URIs that it must accept. */
export function checkSignIn({
  issuerClients,
  publicUrl,
}: WholeConfig): Promise<readonly Finding[]> {
  const providers = issuerClients.filter(({ signIn }) => signIn !== undefined)
  const isOnly = providers.length === 1
  return Promise.all(
    providers.map(({ issuer, signIn }) => {
      const { callback } = (signIn ?? {}) as { readonly callback?: 'shared' | 'own' }
      return providerFinding(publicUrl, { issuer, isOnly, callback })
    }),
  )
}

async function providerFinding(
  publicUrl: string,
  rules: Omit<CallbackRules, 'namesItself'>,
): Promise<Finding> {
  const { issuer, isOnly, callback } = rules
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
  }
  const methods = metadata.code_challenge_methods_supported
  if (Array.isArray(methods) && !methods.includes('S256'))
    return mistake(
      check,
      `${url} does not list S256 in code_challenge_methods_supported`,
      'Enable PKCE with S256 for the client at the provider.',
    )
  const after =
    metadata.end_session_endpoint === undefined ? '' : ` and ${publicUrl}/oauth/signed-out`
  const path = callbackPathOf({ ...rules, namesItself: namesItself(metadata) })
  const accepts = `the provider must accept the redirect URI ${publicUrl}${path}${after}`
  if (isOnly || callback !== 'shared' || namesItself(metadata)) return ok(check, accepts)
  return warning(
    check,
    `${accepts}; it does not name itself in responses, so another provider could mix up logins`,
    'Set `"callback": "own"` in signIn, and register the redirect URI that this command then names.',
  )
}

/** Only a provider on this machine, in development, has URLs without TLS. */
const isAtLeastAsSafe = (url: string, issuer: string): boolean =>
  URL.canParse(url) && (url.startsWith('https:') || issuer.startsWith('http:'))
