/** Checks the key sets of the issuers, and the origin. */
import { inspectKeySet } from '../../dev/start/key-sets.ts'
import { remedyFor } from '../../dev/start/unreachable.ts'
import type { WholeConfig } from '../../src/features/environment.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { request, shownUrl } from './request.ts'

/** Checks all issuers at the same time. */
export function checkKeySets({
  issuers,
  issuerClients,
  publicUrl,
}: WholeConfig): Promise<readonly Finding[]> {
  const others = issuers.filter(({ issuer }) => issuer !== publicUrl)
  return Promise.all(
    others.map((config) => {
      const client = issuerClients.find(({ issuer }) => issuer === config.issuer)
      return keySetFinding(config, client?.signIn !== undefined)
    }),
  )
}

async function keySetFinding(
  config: WholeConfig['issuers'][number],
  signsIdTokens: boolean,
): Promise<Finding> {
  const check = `key set of ${config.issuer}`
  if (config.jwks !== undefined) {
    return ok(check, `${config.jwks.keys.length} keys in the configuration`)
  }
  if (config.keySet === 'none') return ok(check, 'none: a JWT that names this issuer is refused')
  const call = signsIdTokens ? undefined : (config.introspection ?? config.userinfo)
  if (call?.form === 'jwt') return ok(check, 'not used: the issuer verifies its tokens itself')
  const report = await inspectKeySet(config, new AbortController().signal)
  const { mistake: found } = report
  if (found !== undefined && call !== undefined)
    return warning(
      check,
      `${found}; its opaque tokens need no keys, but its JWTs get 503`,
      'In its entry of ISSUERS: if the provider has no key set, set `"keySet": "none"`; otherwise set `"form": "jwt"`, or its jwksUri.',
    )
  if (found !== undefined) return mistake(check, found, remedyFor(found, keySetRemedy(found)))
  const { location, algorithms, ignored } = report
  const seen = `${location} has keys for ${algorithms.join(', ')}`
  if (ignored.length === 0) return ok(check, seen)
  const unused = ignored.map((key) => `${key.index} (${key.check})`).join(', ')
  return warning(
    check,
    `${seen}; not usable, by position and member: ${unused}`,
    'Ignore this if no access token is signed with these keys; otherwise report it to the provider.',
  )
}

function keySetRemedy(text: string): string {
  if (/no key that can be used/.test(text)) {
    return 'Set `algorithms` of the issuer in ISSUERS to those of its keys.'
  }
  if (/^metadata/.test(text)) {
    return 'Write `issuer` in ISSUERS exactly as the provider does, or set its jwksUri.'
  }
  return 'Set jwksUri in ISSUERS to the URL that the metadata of the provider names as jwks_uri.'
}

/** Calls the origin once. Any response below 500 means that it is reachable. */
export async function checkOrigin(
  url: string | undefined,
  variable = 'ORIGIN_URL',
): Promise<Finding> {
  const check = 'origin'
  if (url === undefined) {
    return notChecked(
      check,
      'the origin is a Worker that is bound as ORIGIN',
      'Call a route of the running gateway that the origin serves.',
    )
  }
  const answer = await request(url)
  const shown = shownUrl(url)
  if (typeof answer === 'string') {
    const remedy = remedyFor(answer, `Start the origin, or correct ${variable}.`)
    return mistake(check, `${shown} ${answer}`, remedy)
  }
  const seen = `${shown} responds with status ${answer.status} in ${Math.round(answer.durationMs)} ms`
  return answer.status < 500
    ? ok(check, seen)
    : warning(check, seen, 'Look into the log of the origin.')
}
