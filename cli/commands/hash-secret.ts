/**
 * `portcullis clients hash-secret`: creates the configuration of the first client of a deployment.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Command } from '@commander-js/extra-typings'
import { repeated, textOf } from '../arguments.ts'
import { offlineCommand } from '../command.ts'
import { usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { record, visibleJson } from '../text.ts'

/** 256 bits (ASVS 11.5.1). */
const SECRET_BYTES = 32
const MIN_SECRET_CHARACTERS = 32
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function addHashSecret(clients: Command): void {
  offlineCommand(clients, {
    name: 'hash-secret',
    does: 'create an id, a secret, and the value of CLIENTS with the hash of the secret; offline',
    examples: [
      'portcullis clients hash-secret --name operator --role operator',
      'portcullis clients hash-secret - < secret.txt',
    ],
  })
    .addHelpText(
      'after',
      '\nUse - to read the secret from standard input: arguments are visible to other users.',
    )
    .argument('[secret]')
    .option('--id <uuid>', 'client id (default: a new one)')
    .option('--name <name>', 'name of the client', 'operator')
    .option('--role <role>', 'its roles (default: operator); repeatable', repeated)
    .action(async (argument, options) => {
      const clientSecret = await secretOf(argument)
      const id = options.id?.toLowerCase() ?? randomUUID()
      if (!UUID.test(id)) throw usage('--id must be a UUID')
      const entry = {
        id,
        name: options.name,
        grants: ['client_credentials'],
        roles: options.role ?? ['operator'],
        secretSha256: createHash('sha256').update(clientSecret).digest('base64url'),
      }
      const output = createOutput(options.json ?? false)
      const known = argument === undefined ? { clientId: id, clientSecret } : { clientId: id }
      output.result(
        { ...known, entry },
        `${record(known, output.style)}\n\n${visibleJson([entry])}`,
      )
      output.remark('The text from [ to ] is the value of CLIENTS for this client alone.')
      if (argument === undefined) output.remark('The secret is shown once and not stored.')
    })
}

async function secretOf(argument: string | undefined): Promise<string> {
  if (argument === undefined) return `pcs_${randomBytes(SECRET_BYTES).toString('base64url')}`
  if (argument !== '-') throw usage('a secret cannot be an argument; use - and standard input')
  const secret = await textOf(argument)
  if (secret.length < MIN_SECRET_CHARACTERS) {
    throw usage(`a secret must have at least ${MIN_SECRET_CHARACTERS} characters`)
  }
  return secret
}
