/** The callers of the benchmark, and their tokens. */
import { prepareDevVars } from '../dev/dev-vars.ts'
import { signAccessToken } from '../dev/start/access-token.ts'

/** Issuer and audience; nobody looks it up. */
export const PUBLIC_URL = 'https://gateway.bench.test'
/** Each with a window of its own in Redis. */
const SUBJECTS = 50
/** Five times what the gateway's token cache holds: used in turn, none is found there again. */
const MANY_TOKENS = 5_000
const TTL_SECONDS = 3_600

export interface BenchTokens {
  readonly few: readonly string[]
  readonly many: readonly string[]
  /** A good token of a caller without any role. */
  readonly powerless: string
  /** Private JWKS of the gateway, JSON. */
  readonly signingKeys: string
}

/** Makes a key, which is kept in `file`, and signs the tokens with it. */
export async function mintTokens(file: string): Promise<BenchTokens> {
  const { SIGNING_KEYS: signingKeys } = await prepareDevVars(file, PUBLIC_URL)
  const sign = (subject: string, roles: readonly string[]) =>
    signAccessToken(
      { subject, client: 'bench', roles, ttlSeconds: TTL_SECONDS },
      { PUBLIC_URL, SIGNING_KEYS: signingKeys },
    )
  const writers = async (count: number) => {
    const tokens: string[] = []
    for (let i = 0; i < count; i++) tokens.push(await sign(`caller-${i % SUBJECTS}`, ['writer']))
    return tokens
  }
  return {
    few: await writers(SUBJECTS),
    many: await writers(MANY_TOKENS),
    powerless: await sign('caller-0', []),
    signingKeys,
  }
}
