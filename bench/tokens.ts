/** The callers of the benchmark, and their tokens. */
import { prepareDevVars } from '../dev/dev-vars.ts'
import { signAccessToken } from '../dev/start/access-token.ts'

/** Issuer and audience. It is never resolved. */
export const PUBLIC_URL = 'https://gateway.bench.test'
/** Subjects. Each has its own limit window in Redis. */
const SUBJECTS = 50
const TTL_SECONDS = 3_600

export interface BenchTokens {
  /** Tokens of callers with a role. */
  readonly writers: readonly string[]
  /** A valid token of a caller without any role. */
  readonly powerless: string
  /** Private JWK Set of the gateway, JSON. */
  readonly signingKeys: string
}

/** Creates a key, stores it in `file`, and signs the tokens with it. */
export async function mintTokens(file: string): Promise<BenchTokens> {
  const { SIGNING_KEYS: signingKeys } = await prepareDevVars(file, PUBLIC_URL)
  const sign = (subject: string, roles: readonly string[]) =>
    signAccessToken(
      { subject, client: 'bench', roles, ttlSeconds: TTL_SECONDS },
      { PUBLIC_URL, SIGNING_KEYS: signingKeys },
    )
  const writers: string[] = []
  for (let i = 0; i < SUBJECTS; i++) writers.push(await sign(`caller-${i}`, ['writer']))
  return {
    writers,
    powerless: await sign('caller-0', []),
    signingKeys,
  }
}
