/** All checks of a token against one entry, in the order of their importance. */

import { shown } from '../../src/access/tokens/rejection.ts'
import { ALGORITHMS } from '../../src/validators/jwk.ts'
import { type Check, failed, passed, skipped, textOf } from './check.ts'
import { isPlainName, marksOfIdToken, ruleForAccessTokens } from './claims.ts'
import type { Comparison } from './comparison.ts'
import { identityChecks } from './identity-checks.ts'
import {
  claimAt,
  claimsOf,
  judgeAlgorithm,
  judgeAudience,
  judgeClient,
  judgeKey,
  judgeSignature,
  judgeType,
  refusedClaims,
  statedKinds,
  unmetRules,
} from './rules.ts'
import { timeChecks } from './time-checks.ts'

/** The claims that may name the client of a token. */
const CLIENT_CLAIMS = ['azp', 'client_id', 'cid', 'appid']

/** Makes all checks but those of the issuer and of its key set. Calls nothing. */
export async function tokenChecks(comparison: Comparison): Promise<readonly Check[]> {
  return [
    await tokenUse(comparison),
    await algorithm(comparison),
    ...(await signature(comparison)),
    await type(comparison),
    await audience(comparison),
    ...(await client(comparison)),
    ...(await rules(comparison)),
    ...(await timeChecks(comparison)),
    ...(await identityChecks(comparison)),
  ]
}

async function isIdToken({ config, presented }: Comparison): Promise<boolean> {
  return (await marksOfIdToken(config, presented.payload)).length > 0
}

async function tokenUse({ config, presented: { payload }, of }: Comparison): Promise<Check> {
  const check = 'token use'
  const marks = await marksOfIdToken(config, payload)
  const expected = config.tokenUse === 'id' ? 'ID token' : 'access token'
  const [kind] = marks.length === 0 ? await statedKinds(config, payload) : []
  if (kind !== undefined) {
    const mistake = `the token is of a kind that gives no access: ${kind} is ${textOf(payload[kind])}`
    return failed(check, payload[kind], mistake, { expected, remedy: 'Send the access token' })
  }
  if (marks.length === 0)
    return { ...passed(check, undefined), seen: 'no mark of an ID token', expected }
  const seen = `ID token (${marks.join(', ')})`
  if (config.tokenUse === 'id') return { ...passed(check, undefined), seen, expected }
  const mistake = `this is an ID token (it has ${marks.join(', ')}), and ${of} accepts access tokens`
  const remedy =
    'Send the access token of the same response; if it is opaque, request one for the audience of the API. An ID token is for the client, so no entry is suggested that accepts it'
  return { ...failed(check, undefined, mistake, { expected, remedy }), seen }
}

async function algorithm({
  config,
  presented: { header },
  of,
  fields,
}: Comparison): Promise<Check> {
  const { alg } = header
  const expected = config.algorithms.join(', ')
  if ((await judgeAlgorithm(config, header)) === undefined)
    return passed('alg', alg, config.algorithms)
  if (/^HS/i.test(alg)) {
    const mistake = `the token is signed with ${shown(alg)}, a shared secret, and ${of} permits ${expected}`
    const remedy =
      'Configure the provider to sign with RS256 or ES256: with a shared secret, every party that verifies a token can also forge one'
    return failed('alg', alg, mistake, { expected, remedy })
  }
  if (!ALGORITHMS.some((known) => known === alg)) {
    const mistake = `the token has the algorithm ${shown(alg)}, which is not supported`
    return failed('alg', alg, mistake, {
      expected,
      remedy: 'Configure the provider to sign with RS256 or ES256',
    })
  }
  const own = Array.isArray(fields.algorithms) ? fields.algorithms : []
  return failed('alg', alg, `the token is signed with ${alg}, and ${of} permits ${expected}`, {
    expected,
    remedy: 'Add the algorithm, if the provider documents it',
    change: { algorithms: [...own, alg] },
  })
}

async function signature({ presented, ring, config }: Comparison): Promise<readonly Check[]> {
  const { header } = presented
  if (ring === undefined) {
    return [
      skipped('key', 'no key set'),
      skipped('signature', 'no key set: all claims may be forged'),
    ]
  }
  if (/^HS/i.test(header.alg) && !config.algorithms.includes('HS256'))
    return [skipped('signature', 'a shared secret is not in a public key set')]
  const kids = [...new Set([...ring].map(({ kid }) => kid ?? 'none'))].slice(0, 10).join(', ')
  const refused = await judgeKey(ring, header)
  if (refused !== undefined) {
    const mistakes: Readonly<Record<string, string>> = {
      kid_unknown: `the key ${shown(header.kid)} of the token is not in the key set`,
      kid_missing: 'the token has no kid, and the key set does not have exactly one key for it',
      key_algorithm: `the key ${shown(header.kid)} is not for ${shown(header.alg)}`,
    }
    const remedy =
      'Request a new token: the provider may have rotated its keys. If it fails too, the token is of another issuer, or jwksUri is wrong'
    const mistake = mistakes[refused] ?? refused
    return [failed('key', header.kid, mistake, { expected: shown(kids), remedy })]
  }
  const key = passed('key', header.kid, kids)
  if ((await judgeSignature(ring, presented)) === undefined)
    return [key, passed('signature', 'valid')]
  const remedy =
    'Copy the token again, completely. If it fails again, the token was changed, or another issuer signed it'
  return [
    key,
    failed('signature', 'invalid', 'the signature is not valid for the key of the issuer', {
      remedy,
    }),
  ]
}

async function type(comparison: Comparison): Promise<Check> {
  const { config, presented, fields, of } = comparison
  const { header, payload } = presented
  const types = [config.typ].flat()
  const expected = types.join(', ')
  if ((await judgeType(config, header)) === undefined) return passed('typ', header.typ, types)
  const { typ } = header
  const mistake =
    typ === undefined
      ? `the header of the token has no typ, and ${of} expects ${expected}`
      : `the header of the token has the typ ${shown(typ)}, and ${of} expects ${expected}`
  const isCommon = typ === undefined || /^(application\/)?(jwt|at\+jwt)$/i.test(typ)
  if (!isCommon || (await isIdToken(comparison))) {
    const remedy = 'Send an access token: the type is of another kind of token'
    return failed('typ', typ, mistake, { expected, remedy })
  }
  const isRuled = config.clients !== undefined || Object.keys(config.require ?? {}).length > 0
  const rule = isRuled ? {} : ruleForAccessTokens(payload)
  const change = { typ: typ ?? 'none', ...rule }
  const isSafe = isRuled || Object.keys(rule).length > 0 || typ !== undefined
  return failed('typ', typ, mistake, {
    expected,
    remedy: isSafe
      ? 'Permit the type, with a rule in require that ID tokens of the provider do not meet'
      : 'Let the provider set a claim that only access tokens have, and require it: without typ, nothing tells them from ID tokens',
    ...(isSafe && {
      change: fields.typ === undefined ? change : { ...change, typ: [...types, change.typ] },
    }),
  })
}

async function audience({
  config,
  presented: { payload },
  fields,
  of,
}: Comparison): Promise<Check> {
  const claim =
    config.audienceClaim === undefined ? 'aud' : `audienceClaim ${shown(config.audienceClaim)}`
  const { aud } = claimsOf(config, payload)
  const names = [config.audience].flat()
  const expected = textOf(names)
  if ((await judgeAudience(config, payload)) === undefined) return passed(claim, aud, names)
  if (aud === undefined || aud === null) {
    const holder = CLIENT_CLAIMS.find((name) => names.some((one) => one === payload[name]))
    const mistake = `the token has no audience, and ${of} expects ${expected}`
    return failed(claim, aud, mistake, {
      expected,
      remedy:
        holder === undefined
          ? 'Configure the provider to name the API in aud; portcullis idp show names the setting of known providers'
          : `Compare ${holder} instead: it has the audience of the entry`,
      ...(holder !== undefined && { change: { audienceClaim: holder } }),
    })
  }
  const others = [aud].flat().filter(isPlainName)
  const mistake = `the token is for ${textOf(aud)}, and ${of} expects ${expected}`
  const written = Array.isArray(fields.audience) ? [...fields.audience, ...others] : others
  return failed(claim, aud, mistake, {
    expected,
    remedy: `Request a token for ${expected}. Change the audience only if the other name is of this API`,
    ...(others.length > 0 && {
      change: { audience: written.length === 1 ? written[0] : written },
      condition: `audience: only if ${textOf(others)} names this API; otherwise, tokens for another API are accepted`,
    }),
  })
}

async function client({
  config,
  presented: { payload },
  fields,
  of,
}: Comparison): Promise<readonly Check[]> {
  const { client_id: seen } = claimsOf(config, payload)
  const clients = config.clients
  if (clients === undefined) return [passed('client', seen)]
  if ((await judgeClient(config, payload)) === undefined) return [passed('client', seen, clients)]
  const expected = textOf(clients)
  if (seen === undefined) {
    const remedy =
      'Send an access token of an OAuth client. ID tokens of many providers name no client'
    return [
      failed('client', seen, `the token names no client, and ${of} expects ${expected}`, {
        expected,
        remedy,
      }),
    ]
  }
  const isOwn = Array.isArray(fields.clients) && isPlainName(seen)
  return [
    failed(
      'client',
      seen,
      `the token is of the client ${textOf(seen)}, and ${of} accepts ${expected}`,
      {
        expected,
        remedy: 'Request the token with an accepted client, or add this one to clients',
        ...(isOwn && {
          change: { clients: [...(fields.clients as readonly string[]), seen] },
          condition: `clients: only if tokens of ${textOf(seen)} must be accepted`,
        }),
      },
    ),
  ]
}

async function rules({
  config,
  presented: { payload },
  of,
}: Comparison): Promise<readonly Check[]> {
  const unmet = await unmetRules(config, payload)
  const required = Object.entries(config.require ?? {}).map(([name, value]) => {
    const seen = claimAt(config, payload, name)
    const check = `require ${name}`
    if (!unmet.includes(name)) return passed(check, seen, value)
    const expected = textOf(value)
    const what = CLIENT_CLAIMS.includes(name) ? 'the token is of another client: ' : ''
    const mistake = `${what}the claim ${shown(name)} is ${textOf(seen)}, and ${of} requires ${expected}`
    const remedy =
      'Request a token that meets the rule. No suggestion removes the rule: it may distinguish access tokens from others'
    return failed(check, seen, mistake, { expected, remedy })
  })
  const refused = await refusedClaims(config, payload)
  const mistakes = refused.map((name) => {
    const mistake = `the token has the claim ${shown(name)}, which ${of} refuses: ID tokens and logout tokens have it`
    return failed(`refuse ${name}`, 'present', mistake, {
      expected: 'none',
      remedy: 'Send an access token',
    })
  })
  return [...required, ...mistakes]
}
