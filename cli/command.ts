/** What all commands have in common: `--json`, where the gateway is, and examples in their help. */
import type { Command } from 'commander'
import { type ConnectionOptions, DEFAULT_URL, readConnection } from './connection.ts'
import { createGateway, type Gateway } from './gateway.ts'
import { createOutput, type Output } from './output.ts'

export interface CommonOptions extends ConnectionOptions {
  readonly json?: boolean
}

export interface Description {
  /** Name and arguments, as commander writes them: `show <id>`. */
  readonly name: string
  readonly does: string
  /** Lines of a shell, without `portcullis` in front. At least one. */
  readonly examples: readonly [string, ...string[]]
}

/** Adds a command that talks to the gateway. Give it options and arguments of its own. */
export function onlineCommand(parent: Command, description: Description): Command {
  return offlineCommand(parent, description)
    .option('--url <url>', `the gateway (default: PORTCULLIS_URL, or ${DEFAULT_URL})`)
    .option('--client-id <id>', 'who asks (default: PORTCULLIS_CLIENT_ID)')
}

/** Adds a command that needs no gateway. */
export function offlineCommand(parent: Command, { name, does, examples }: Description): Command {
  const lines = examples.map((example) => `  ${example}`).join('\n')
  return parent
    .command(name)
    .description(does)
    .option('--json', 'print JSON, errors too')
    .addHelpText('after', `\nExamples:\n${lines}`)
}

/** The options that every list has. */
export function paged(command: Command): Command {
  return command
    .option('--limit <count>', 'how many at most, 1 to 200 (default: 50)', String)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
}

export interface PageOptions {
  readonly limit?: string
  readonly cursor?: string
}

/** What the options of a list ask the gateway for. */
export function pageQuery({ limit, cursor }: PageOptions) {
  return { limit, cursor }
}

/** What a command works with. Throws a usage failure if nobody can say who asks. */
export function workWith(
  options: CommonOptions,
  signal?: AbortSignal,
): { readonly gateway: Gateway; readonly output: Output; readonly clientId: string } {
  const connection = readConnection(options, process.env, process.cwd())
  const { clientId } = connection
  const output = createOutput(options.json ?? false)
  return { gateway: createGateway(connection, signal), output, clientId }
}
