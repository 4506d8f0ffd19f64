/** The same operations with OpenSSL in Node: the speed of this machine without workerd. */
import {
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  type SigningOptions,
  sign,
  verify,
} from 'node:crypto'
import { rounded } from '../measure/statistics.ts'
import { ALGORITHMS, type Algorithm, type OperationId, SUBJECT } from './operations.ts'

/** Microseconds of one operation. Operations with opaque tokens have no counterpart. */
export type NativeTimes = Readonly<Partial<Record<OperationId, number>>>

type Operate = () => string

const MICROS_PER_SECOND = 1_000_000
const WARM_UP_SHARE = 0.2
const DIGITS = 3
const RSA_BITS = 2_048
const LIFE_SECONDS = 900
const OPTIONS: SigningOptions = { dsaEncoding: 'ieee-p1363' }

/** Runs each operation for `seconds`, one after another. Throws if a token is not verified. */
export function measureNative(seconds: number): NativeTimes {
  const times: Partial<Record<OperationId, number>> = {}
  for (const [id, operate] of operations()) times[id] = microsOf(operate, seconds)
  return times
}

function microsOf(operate: Operate, seconds: number): number {
  repeat(operate, seconds * WARM_UP_SHARE)
  return rounded(repeat(operate, seconds), DIGITS)
}

/** Returns the microseconds of one operation. */
function repeat(operate: Operate, seconds: number): number {
  const startMs = performance.now()
  const untilMs = startMs + seconds * 1000
  let count = 0
  while (count === 0 || performance.now() < untilMs) {
    operate()
    count++
  }
  return ((performance.now() - startMs) / 1000 / count) * MICROS_PER_SECOND
}

function operations(): readonly (readonly [OperationId, Operate])[] {
  const signing = ALGORITHMS.flatMap((algorithm) => {
    const { privateKey, publicKey } = keyPairOf(algorithm)
    const token = issue(algorithm, privateKey)
    return [
      [`issue-${algorithm}`, () => issue(algorithm, privateKey)],
      [`verify-${algorithm}`, () => subjectOf(token, algorithm, publicKey)],
    ] as const
  })
  return [['uuid', () => randomUUID() + randomUUID()], ...signing]
}

function keyPairOf(algorithm: Algorithm) {
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: RSA_BITS })
  return generateKeyPairSync('ed25519')
}

const digestOf = (algorithm: Algorithm) => (algorithm === 'EdDSA' ? undefined : 'sha256')
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Issues a token with the claims of an access token (RFC 9068). */
function issue(algorithm: Algorithm, key: KeyObject): string {
  const iat = Math.floor(Date.now() / 1000)
  const header = encoded({ alg: algorithm, typ: 'at+jwt', kid: 'native' })
  const claims = encoded({
    iss: 'https://gateway.bench.test',
    aud: 'https://gateway.bench.test',
    sub: SUBJECT,
    client_id: 'bench',
    roles: ['writer'],
    jti: randomUUID(),
    iat,
    exp: iat + LIFE_SECONDS,
  })
  const signed = `${header}.${claims}`
  const signature = sign(digestOf(algorithm), Buffer.from(signed), { key, ...OPTIONS })
  return `${signed}.${signature.toString('base64url')}`
}

/** Returns the subject of a token. Throws if its signature is wrong. */
function subjectOf(token: string, algorithm: Algorithm, key: KeyObject): string {
  const at = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(at + 1), 'base64url')
  const signed = Buffer.from(token.slice(0, at))
  if (!verify(digestOf(algorithm), signed, { key, ...OPTIONS }, signature))
    throw new Error(`${algorithm}: a valid token is refused`)
  const [, claims = ''] = token.split('.')
  return (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sub: string }).sub
}
