/**
 * Takes access away, at once and everywhere: `npx node examples/revoke.ts`, with the variables
 * UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN of the gateway's database.
 */
import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { type CutOffKind, createRedisRest, createRevocations } from 'portcullis'

const USAGE = `npx node examples/revoke.ts token <jwt>
npx node examples/revoke.ts subject|client|session|tenant <issuer> <value>

The first ends one token, the second every token that was issued to it up to now.`

const KINDS: readonly string[] = ['subject', 'client', 'session', 'tenant'] satisfies CutOffKind[]
/** No token lives longer: a day (`maxTokenAge`), and the most that a clock may be wrong. */
const LONGEST_LIFE_SECONDS = 86_400 + 300
/** More than a gateway waits: nobody is kept waiting here. */
const TIMEOUT_MS = 5_000

const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = process.env
if (!url || !token) fail('set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN')
const revocations = createRevocations(
  createRedisRest({ url, token, timeoutMs: TIMEOUT_MS }),
  Date.now,
)

const [kind = '', ...rest] = process.argv.slice(2)
if (kind === 'token' && rest.length === 1) await revokeToken(rest[0] ?? '')
else if (isCutOffKind(kind) && rest.length === 2) await cutOff(kind, rest[0] ?? '', rest[1] ?? '')
else fail(USAGE)

/** Reads the claims without verifying them: revoking a token that is none does no harm. */
async function revokeToken(jwt: string): Promise<void> {
  const { iss, jti, exp } = decodeJwt(jwt)
  if (iss === undefined || jti === undefined || exp === undefined)
    fail('the token has no iss, jti and exp: cut off its subject instead')
  const tokenIdHash = createHash('sha256')
    .update(JSON.stringify([iss, jti]))
    .digest('base64url')
  await revocations.revokeToken({ tokenIdHash, untilSeconds: exp + 300 })
  console.log(`The token ${jti} is revoked.`)
}

async function cutOff(kind: CutOffKind, issuer: string, value: string): Promise<void> {
  const atSeconds = Math.floor(Date.now() / 1000)
  await revocations.cutOff({ kind, issuer, value, atSeconds, ttlSeconds: LONGEST_LIFE_SECONDS })
  console.log(`Every token of the ${kind} ${value} up to now is dead.`)
}

function isCutOffKind(text: string): text is CutOffKind {
  return KINDS.includes(text)
}

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}
