/** Assembles the commands of `portcullis`. */
import { Command, type CommandUnknownOpts, Help, type Option } from '@commander-js/extra-typings'
import { createColors } from 'picocolors'
import manifest from '../package.json' with { type: 'json' }
import { addApiKeyCommands } from './commands/api-keys.ts'
import { addAuditCommands } from './commands/audit.ts'
import { addBanCommands } from './commands/bans.ts'
import { addClientCommands } from './commands/clients.ts'
import { addCompletionCommands } from './commands/completion.ts'
import { addConsentCommands } from './commands/consents.ts'
import { addDeployCommands } from './commands/deploy.ts'
import { addDevCommand } from './commands/dev.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addExplainCommand } from './commands/explain.ts'
import { addIdpCommands } from './commands/idp.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLimitCommands } from './commands/limits.ts'
import { addLoginCommands } from './commands/login.ts'
import { addMcpCommands } from './commands/mcp.ts'
import { addOpenApiCommands } from './commands/openapi.ts'
import { addPlanCommands } from './commands/plans.ts'
import { addPolicyCommands } from './commands/policy.ts'
import { addRedisCommand } from './commands/redis.ts'
import { addQuestionCommands, addRelationCommands } from './commands/relations.ts'
import { addRevocationCommands } from './commands/revocations.ts'
import { addServeCommand } from './commands/serve.ts'
import { addSignalCommands } from './commands/signals.ts'
import { addTokenCommands } from './commands/token.ts'
import { addUsageCommand } from './commands/usage.ts'
import { DEFAULT_URL } from './connection.ts'
import { hasColors } from './terminal.ts'

const HELP = `
Environment:
  PORTCULLIS_URL            the gateway (default: ${DEFAULT_URL})
  PORTCULLIS_CLIENT_ID      an operator's client, for which an access token is requested
  PORTCULLIS_CLIENT_SECRET  its secret, which cannot be an option
Without a client, the login of a person is used: see \`portcullis login\`.

In a project, missing values are read from the .dev.vars that \`portcullis dev\` writes, for gateways
on this machine only.

Exit codes: 0 done, 1 refused by the gateway or by Cloudflare, 2 wrong usage,
3 no answer, or an answer that decides nothing (an outage; repeat the call later).

Tasks:
  Why was alice refused?     portcullis audit query --subject alice --decision deny --since yesterday
  Revoke her everywhere      portcullis revoke subject alice --reason "laptop stolen"
  Change a caller's limit    portcullis limits override LIMIT acme --requests 200
                             (names of limits: portcullis limits list)
  Which key is this?         portcullis api-keys lookup - < key.txt
  Which tools changed?       portcullis mcp tools --changed
  What happens now?          portcullis audit tail`

/** The headings of the help, in the order of the first command of each. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'Run a gateway:': ['dev', 'serve', 'redis', 'deploy', 'doctor'],
  'Callers and credentials:': [
    ...['token', 'revoke', 'revocations', 'clients', 'consents', 'api-keys'],
  ],
  'Limits, plans and bans:': ['usage', 'limits', 'plans', 'bans'],
  'Relations:': ['relations', 'check', 'expand'],
  'Audit trail:': ['audit', 'explain'],
  'Keys and issuers:': ['keys', 'idp', 'signals'],
  'Policy:': ['policy', 'openapi', 'mcp'],
}
const OTHERS = 'Command line:'

const groupOf = (name: string): string =>
  Object.entries(GROUPS).find(([, names]) => names.includes(name))?.[0] ?? OTHERS

/** Commander removes colors that the output cannot show. */
const { bold, cyan } = createColors(true)

function optionDescription(option: Option): string {
  const description = new Help().optionDescription(option)
  return option.mandatory ? `${description} (required)` : description
}

/**
 * Creates the program. It throws commander's errors instead of ending the process, and does not
 * print them.
 */
export function createProgram(): CommandUnknownOpts {
  const program = new Command('portcullis')
    .description('runs and operates a Portcullis gateway')
    .version(manifest.version)
    // Options after a subcommand belong to it: `deploy rollback --yes`.
    .enablePositionalOptions()
    .exitOverride()
    .commandsGroup(OTHERS)
    .helpCommand('help [command]', 'show the help of a command')
    .configureOutput({
      outputError() {},
      getOutHasColors: () => hasColors(process.stdout, process.env),
      getErrHasColors: () => hasColors(process.stderr, process.env),
    })
    .configureHelp({
      optionDescription,
      styleTitle: bold,
      styleSubcommandTerm: cyan,
      styleOptionTerm: cyan,
    })
    .addHelpText('after', HELP)
  addDevCommand(program)
  addServeCommand(program)
  addRedisCommand(program)
  addTokenCommands(program)
  addRevocationCommands(program)
  addClientCommands(program)
  addConsentCommands(program)
  addApiKeyCommands(program)
  addUsageCommand(program)
  addLimitCommands(program)
  addPlanCommands(program)
  addBanCommands(program)
  addRelationCommands(program)
  addQuestionCommands(program)
  addAuditCommands(program)
  addKeyCommands(program)
  addExplainCommand(program)
  addIdpCommands(program)
  addSignalCommands(program)
  addPolicyCommands(program)
  addDeployCommands(program)
  addDoctorCommand(program)
  addOpenApiCommands(program)
  addMcpCommands(program)
  addLoginCommands(program)
  addCompletionCommands(program)
  for (const command of program.commands) command.helpGroup(groupOf(command.name()))
  return program
}
