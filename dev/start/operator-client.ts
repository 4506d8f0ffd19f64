/** The operator's client of a checkout, as an entry of `CLIENTS`: how the first one exists. */
import { createHash } from 'node:crypto'
import type { DevVars } from '../dev-vars.ts'

const OPERATOR_ROLE = 'operator'

/**
 * Returns the value of `CLIENTS` for a gateway: what `configured` holds already, and the client of
 * `.dev.vars`, by the SHA-256 of its secret. An entry of the same `id` is left as it is. What is
 * no JSON array comes back unchanged, for the gateway's own schema to complain of.
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
