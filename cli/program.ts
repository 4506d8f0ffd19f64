/** Assembles the commands of `portcullis`. */
import { Command, Help, type Option } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { addApiKeyCommands } from './commands/api-keys.ts'
import { addAuditCommands } from './commands/audit.ts'
import { addBanCommands } from './commands/bans.ts'
import { addClientCommands } from './commands/clients.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLimitCommands } from './commands/limits.ts'
import { addQuestionCommands, addRelationCommands } from './commands/relations.ts'
import { addRevocationCommands } from './commands/revocations.ts'
import { addTokenCommands } from './commands/token.ts'
import { DEFAULT_URL } from './connection.ts'

const HELP = `
Environment:
  PORTCULLIS_URL            the gateway (default: ${DEFAULT_URL})
  PORTCULLIS_CLIENT_ID      an operator's client, for which an access token is requested
  PORTCULLIS_CLIENT_SECRET  its secret, which cannot be an option

In a checkout, missing values are read from the .dev.vars that \`npm start\` writes, for gateways on
this machine only.

Exit codes: 0 done, 1 refused by the gateway, 2 wrong usage,
3 no answer, or an answer that decides nothing (an outage; repeat the call later).

Examples:
  portcullis revoke subject alice --reason "laptop stolen"
  portcullis audit tail --decision deny
  portcullis clients create --name billing --grant client_credentials --role reader`

function optionDescription(option: Option): string {
  const description = new Help().optionDescription(option)
  return option.mandatory ? `${description} (required)` : description
}

/**
 * Creates the program. It throws commander's errors instead of ending the process, and does not
 * print them.
 */
export function createProgram(): Command {
  const program = new Command('portcullis')
    .description('operates a Portcullis gateway')
    .version(manifest.version)
    .exitOverride()
    .configureOutput({ outputError() {} })
    .configureHelp({ optionDescription })
    .addHelpText('after', HELP)
  addTokenCommands(program)
  addRevocationCommands(program)
  addClientCommands(program)
  addApiKeyCommands(program)
  addLimitCommands(program)
  addBanCommands(program)
  addRelationCommands(program)
  addQuestionCommands(program)
  addAuditCommands(program)
  addKeyCommands(program)
  return program
}
