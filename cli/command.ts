/** What all commands share: `--json`, connection options, and examples in the help. */
import {
  type Command,
  type CommandUnknownOpts,
  Option,
  type OptionValues,
} from '@commander-js/extra-typings'
import { type ConnectionOptions, DEFAULT_URL, readConnection } from './connection.ts'
import { createGateway } from './gateway.ts'
import { createOutput } from './output.ts'

export interface CommonOptions extends ConnectionOptions {
  readonly json?: boolean
  readonly wide?: boolean
}

export interface Description {
  /** Without arguments: commander infers their types where `argument` adds them. */
  readonly name: string
  /** Whether the parent without a subcommand runs it. */
  readonly isDefault?: boolean
  readonly does: string
  /** Shell command lines for the help. At least one. */
  readonly examples: readonly [string, ...string[]]
}

/** The options of the command that a function returns, as they are declared there. */
export type OptionsOf<Declare extends (parent: never) => { opts(): OptionValues }> = ReturnType<
  ReturnType<Declare>['opts']
>

/**
 * Adds a command that calls the gateway. The caller adds the command's own options and arguments.
 */
export function onlineCommand(parent: Command, description: Description) {
  return offlineCommand(parent, description)
    .option('--url <url>', `the gateway (default: PORTCULLIS_URL, or ${DEFAULT_URL})`)
    .option('--client-id <id>', "the operator's client id (default: PORTCULLIS_CLIENT_ID)")
}

/** Adds a command that does not call the gateway. */
export function offlineCommand(
  parent: Command,
  { name, isDefault = false, does, examples }: Description,
) {
  const lines = examples.map((example) => `  ${example}`).join('\n')
  return parent
    .command(name, { isDefault })
    .description(does)
    .option('--json', 'print JSON, errors too')
    .addHelpText('after', `\nExamples:\n${lines}`)
}

/** Accepts an earlier name of an option, which the help does not show. */
export function alias(command: CommandUnknownOpts, earlier: string, name: string): void {
  command
    .addOption(new Option(`--${earlier} <${name}>`).hideHelp())
    .on(`option:${earlier}`, (value: string) => command.setOptionValue(name, value))
}

/** Adds the option for tables that a terminal shows in fewer columns. */
export const wide = <A extends unknown[], O extends OptionValues>(command: Command<A, O>) =>
  command.option('--wide', 'all columns on a terminal, uncut; a pipe always gets them')

/** Adds the options that every list command has. */
export const paged = <A extends unknown[], O extends OptionValues>(command: Command<A, O>) =>
  wide(command)
    .option('--limit <count>', 'largest number of entries, 1 to 200 (default: 50)')
    .option('--cursor <cursor>', 'continue after an earlier page')

export interface PageOptions {
  readonly limit?: string
  readonly cursor?: string
}

/** Returns the query parameters for the page options. */
export function pageQuery({ limit, cursor }: PageOptions) {
  return { limit, cursor }
}

/**
 * Returns the gateway client, the output and the client id of a command. Throws a usage failure if
 * the client's credentials are not configured.
 */
export function workWith(options: CommonOptions, signal?: AbortSignal) {
  const connection = readConnection(options, process.env, process.cwd())
  const { clientId } = connection
  const output = createOutput(options.json ?? false, options.wide)
  return { gateway: createGateway(connection, signal), output, clientId, connection }
}
