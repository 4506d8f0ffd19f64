/** What the tokens of the operations say, and how many of them there are. */
import type { Principal } from '../../src/index.ts'
import type { AccessGrant, IssueOptions, TokenIssuer } from '../../src/tokens/access-grant.ts'
import { SUBJECT } from '../tokens/operations.ts'

export const TTL_SECONDS = 900
/** As many as a busy isolate would see in turn; all of them fit its caches. */
const KNOWN_TOKENS = 100

/** As a client's own token would be. */
export function grantFor(publicUrl: string): AccessGrant {
  return {
    subject: SUBJECT,
    client: 'bench',
    roles: ['writer'],
    scopes: [],
    audiences: [publicUrl],
  }
}

/** Issues a hundred tokens, and returns what gives them in turn. */
export async function tokensOf(
  issuer: TokenIssuer,
  grant: AccessGrant,
  options: IssueOptions,
): Promise<(index: number) => string> {
  const tokens: string[] = []
  while (tokens.length < KNOWN_TOKENS) tokens.push((await issuer.issue(grant, options)).token)
  return (index) => tokens[index % KNOWN_TOKENS] as string
}

/** The subject of a principal, which must be there and the one that the tokens were issued to. */
export function subjectOf(principal: Principal | undefined): string {
  if (principal?.subject !== SUBJECT) throw new Error('another subject, or none')
  return principal.subject
}
