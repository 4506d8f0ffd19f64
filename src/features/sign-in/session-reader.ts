/** Finds the user of a session outside of the pipeline of a route. */
import type { Admission } from '../../access/admission/admission.ts'
import type { Principal } from '../../access/principal.ts'
import { credentialHash } from '../../access/tokens/reference.ts'
import type { References } from '../../access/tokens/references.ts'
import { Denied } from '../../errors.ts'
import type { Hosts } from './hosts.ts'

/**
 * Returns the principal of a session that is valid at the host of a URL and not revoked; undefined
 * otherwise. Makes one call to Redis. Throws `Denied` for a banned address or subject, and `Unavailable`.
 */
export type SessionReader = (
  text: string,
  address: string,
  url: string,
) => Promise<Principal | undefined>

export interface SessionReaderOptions {
  readonly admission: Admission
  /** The cache that `admission` uses. */
  readonly references: References
  readonly hosts: Hosts
}

export function createSessionReader({
  admission,
  references,
  hosts,
}: SessionReaderOptions): SessionReader {
  async function decide(text: string, address: string) {
    const caller = { limits: [], proof: undefined, address }
    const known = references.recall(text)
    if (known !== undefined)
      return {
        ...(await admission.admit({ ...caller, principal: known, strict: true })),
        principal: known,
      }
    return admission.admitReference({
      ...caller,
      reference: { kind: 'session', text, hash: await credentialHash(text) },
    })
  }

  return async function readUser(text, address, url) {
    const { principal, denial } = await decide(text, address)
    if (denial === undefined)
      return principal?.signIn?.host === hosts.otherOf(url) ? principal : undefined
    if (denial.code === 'token_rejected' || denial.code === 'token_revoked') return undefined
    throw new Denied(denial)
  }
}
