/** Creates secrets, and passes them to wrangler in a temporary file. */
import { createHash, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Values } from './values.ts'

const OWNER_ONLY = 0o600
/** 256 bits (ASVS 11.5.1). */
const SECRET_BYTES = 32
/** The status of a process that a signal ended: 128 and the number of the signal. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Returns a private JWK Set with one new ES256 key. Its `kid` is its thumbprint (RFC 7638). */
export function generateSigningKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { crv, d, kty, x, y } = privateKey.export({ format: 'jwk' })
  const thumbprint = JSON.stringify({ crv, kty, x, y })
  const kid = createHash('sha256').update(thumbprint).digest('base64url')
  return JSON.stringify({ keys: [{ kty, crv, x, y, d, kid, alg: 'ES256', use: 'sig' }] })
}

/** The first operator's client, and its entry in `CLIENTS`. */
export interface OperatorClient {
  readonly clientId: string
  readonly clientSecret: string
  readonly clients: string
}

export function generateOperatorClient(): OperatorClient {
  const clientId = randomUUID()
  const clientSecret = `pcs_${randomBytes(SECRET_BYTES).toString('base64url')}`
  const secretSha256 = createHash('sha256').update(clientSecret).digest('base64url')
  const grants = ['client_credentials']
  const entry = { id: clientId, name: 'operator', grants, roles: ['operator'], secretSha256 }
  return { clientId, clientSecret, clients: JSON.stringify([entry]) }
}

/** A folder of one run that only its user can read. */
export interface Scratch {
  readonly path: string
  /** Writes secrets as JSON and returns the path of the file, which only its owner can read. */
  writeSecrets(name: string, secrets: Values): string
}

/** Calls `work` with a new folder, and removes the folder afterwards, also after a signal. */
export async function withScratch<Result>(
  work: (scratch: Scratch) => Promise<Result>,
): Promise<Result> {
  const path = mkdtempSync(join(tmpdir(), 'portcullis-deploy-'))
  const remove = () => rmSync(path, { recursive: true, force: true })
  const endings = Object.entries(EXIT_CODES).map(([signal, code]) => {
    const end = () => {
      remove()
      process.exit(code)
    }
    process.once(signal, end)
    return () => process.off(signal, end)
  })
  try {
    return await work({
      path,
      writeSecrets(name, secrets) {
        const file = join(path, `${name}.json`)
        writeFileSync(file, JSON.stringify(secrets), { mode: OWNER_ONLY })
        return file
      },
    })
  } finally {
    for (const forget of endings) forget()
    remove()
  }
}
