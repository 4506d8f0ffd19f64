/** The content and the number of the operations' tokens. */

import type {
  AccessGrant,
  IssueOptions,
  TokenIssuer,
} from '../../src/access/tokens/access-grant.ts'
import type { Principal } from '../../src/index.ts'
import { SUBJECT } from '../tokens/operations.ts'

export const TTL_SECONDS = 900
/** The tokens that a busy isolate sees in turn. All of them fit its caches. */
const KNOWN_TOKENS = 100

/** Returns the grant of a client's own token. */
export function grantFor(publicUrl: string): AccessGrant {
  return {
    subject: SUBJECT,
    client: 'bench',
    roles: ['writer'],
    scopes: [],
    audiences: [publicUrl],
  }
}

/** Issues a hundred tokens. Returns a function that returns them in turn. */
export async function tokensOf(
  issuer: TokenIssuer,
  grant: AccessGrant,
  options: IssueOptions,
): Promise<(index: number) => string> {
  const tokens: string[] = []
  while (tokens.length < KNOWN_TOKENS) tokens.push((await issuer.issue(grant, options)).token)
  return (index) => tokens[index % KNOWN_TOKENS] as string
}

/** Returns the subject of a principal. Throws unless the tokens were issued to it. */
export function subjectOf(principal: Principal | undefined): string {
  if (principal?.subject !== SUBJECT) throw new Error('missing or wrong subject')
  return principal.subject
}
