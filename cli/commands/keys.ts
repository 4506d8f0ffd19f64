/** `portcullis keys`: creates and rotates signing keys, and lists those of a gateway. */
import { type Command, Option } from '@commander-js/extra-typings'
import type { SigningAlgorithm, SigningJwk } from '../../dev/keys/change.ts'
import { type CommonOptions, offlineCommand, onlineCommand, workWith } from '../command.ts'
import { refused, usage } from '../failure.ts'
import { createOutput } from '../output.ts'

interface KeyList {
  readonly keys: readonly object[]
  readonly cursor?: string
}

const ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'RS256', 'Ed25519', 'EdDSA']
const COLUMNS = ['kid', 'alg', 'state', 'notBefore', 'expiresAt']
const NEXT =
  'Set the variable of these keys to the content of the file: SIGNING_KEYS in every gateway, or ' +
  'AUDIT_SIGNING_KEYS for the checkpoints of the audit trail.'
const ROTATION = `
The new key signs in 10 minutes; the keys that it replaces verify for 65 more minutes. Set SIGNING_KEYS to
the content of the file in every gateway, and restart or deploy them, within 5 minutes.`

export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description("the gateway's signing keys")
  const algorithm = () =>
    new Option('--alg <algorithm>', 'algorithm of the new key').choices(ALGORITHMS)
  offlineCommand(keys, {
    name: 'generate',
    does: 'create the value of SIGNING_KEYS, with one new key; offline',
    examples: [
      'portcullis keys generate',
      'portcullis keys generate --file signing-keys.json --alg EdDSA',
    ],
  })
    .addHelpText(
      'after',
      '\nThe output is secret. Gateways with one PUBLIC_URL have the same keys.',
    )
    .option('--file <path>', 'write it to a file that only you can read')
    .addOption(algorithm())
    .option('--force', 'replace the file; all tokens that its keys signed become invalid')
    .action(async ({ alg, file, force = false, ...options }) => {
      const algorithms = alg === undefined ? [] : [alg]
      if (file === undefined) {
        if (force) throw usage('--force needs --file')
        const { generatedKeys } = await keyTools()
        return createOutput(true).result({ keys: await generatedKeys(algorithms) }, '')
      }
      await withFile(options, ({ generateInto, jwksFile }) =>
        generateInto(jwksFile(file), algorithms, force),
      )
      createOutput(options.json ?? false).remark(NEXT)
    })
  offlineCommand(keys, {
    name: 'rotate',
    does: 'add a new key to a file of generate; offline',
    examples: ['portcullis keys rotate --file signing-keys.json'],
  })
    .addHelpText('after', ROTATION)
    .requiredOption('--file <path>', 'the file')
    .addOption(algorithm())
    .action(async ({ alg, file = '', ...options }) => {
      await withFile(options, ({ rotateIn, jwksFile }) => rotateIn(jwksFile(file), alg, Date.now()))
      createOutput(options.json ?? false).remark(NEXT)
    })
  onlineCommand(keys, {
    name: 'list',
    does: 'list the keys of a gateway and their states, without private parts',
    examples: ['portcullis keys list', 'portcullis keys list --file signing-keys.json'],
  })
    .option('--file <path>', 'list the keys of this file instead; offline')
    .action(async ({ file, ...options }) => {
      if (file !== undefined)
        return withFile(options, async ({ keysOf, jwksFile }) => keysOf(jwksFile(file)))
      const { gateway, output } = workWith(options)
      const answer = await gateway.get<KeyList>('/keys')
      output.list(answer, answer.keys, COLUMNS, 'signing keys')
    })
}

/** Loads what only these commands need. */
const keyTools = () => import('../../dev/keys/change.ts')
type KeyTools = Awaited<ReturnType<typeof keyTools>>

/** Prints the keys of a file, after a change. The error of a change has one line, and no part of a key. */
async function withFile(
  options: CommonOptions,
  change: (tools: KeyTools) => Promise<readonly SigningJwk[]>,
): Promise<void> {
  const tools = await keyTools()
  const output = createOutput(options.json ?? false)
  let keys: readonly SigningJwk[]
  try {
    keys = await change(tools)
  } catch (error) {
    throw refused('keys_file', (error as Error).message)
  }
  const nowMs = Date.now()
  output.result({ keys: tools.factsOf(keys, nowMs) }, tools.tableOf(keys, nowMs))
}
