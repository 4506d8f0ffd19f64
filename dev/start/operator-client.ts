/** Adds the operator's client of a checkout to `CLIENTS`, so that a first client exists. */
import { createHash } from 'node:crypto'
import type { DevVars } from '../dev-vars.ts'

const OPERATOR_ROLE = 'operator'

/**
 * Returns the value of `CLIENTS` for a gateway: the entries of `configured`, and the client of
 * `.dev.vars` with the SHA-256 of its secret. Keeps an existing entry with the same `id`. Returns
 * text that is not a JSON array unchanged, so that the gateway's own schema reports it.
 */
export function clientsWithOperator(devVars: DevVars, configured: string | undefined): string {
  const entries = configured === undefined ? [] : arrayIn(configured)
  if (entries === undefined) return configured ?? ''
  const id = devVars.PORTCULLIS_CLIENT_ID
  if (entries.some((entry) => isNamed(entry, id))) return configured ?? ''
  const secretSha256 = createHash('sha256')
    .update(devVars.PORTCULLIS_CLIENT_SECRET)
    .digest('base64url')
  const operator = {
    id,
    name: 'npm start',
    grants: ['client_credentials'],
    roles: [OPERATOR_ROLE],
    secretSha256,
  }
  return JSON.stringify([...entries, operator])
}

function arrayIn(json: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isNamed(entry: unknown, id: string): boolean {
  return typeof entry === 'object' && entry !== null && 'id' in entry && entry.id === id
}
