/** Parses the command line of `npm run keys`. */
import { parseArgs } from 'node:util'
import type { SigningAlgorithm } from '../../src/access/tokens/signing-keys.ts'
import { SIGNING_ALGORITHMS } from '../../src/validators/signing-jwk.ts'
import { DEFAULT_SIGNING_ALGORITHM } from './key-set.ts'

export const USAGE = `npm run -s keys -- <command> [options]

  generate           creates a key set with one new key, or one for each --alg
  rotate             adds a new key at the front. It signs in 10 minutes; the keys that it replaces
                     verify for 65 more minutes. Deploy the key set once, within 5 minutes
  list               shows which key signs, and which keys only verify

  --file <path>      a JWKS file, for a deployment (default: SIGNING_KEYS of .dev.vars); generate
                     prints the set for -
  --alg <algorithm>  ${SIGNING_ALGORITHMS.join(', ')} (default: ${DEFAULT_SIGNING_ALGORITHM}, or that of the active key). A key
                     replaces the keys of its algorithm or, if there are none, all others
  --force            for generate: replaces existing keys; all tokens that they signed become invalid
  --json             for list: prints JSON
  --help

Only generate --file - prints private keys. Status 1: the command failed; 2: usage error.`

const OPTIONS = {
  file: { type: 'string' },
  alg: { type: 'string', multiple: true },
  force: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Options of each command in addition to `--file`. */
const COMMANDS = { generate: ['alg', 'force'], rotate: ['alg'], list: ['json'] } as const
type CommandName = keyof typeof COMMANDS

/** A checked request. */
export interface KeysRequest {
  readonly command: CommandName
  /** `-` for standard output; undefined for `.dev.vars`. */
  readonly file: string | undefined
  /** Empty if no `--alg` was given. */
  readonly algorithms: readonly SigningAlgorithm[]
  readonly force: boolean
  readonly json: boolean
}

/** Parses the arguments. Throws an `Error` of one line if they are invalid. */
export function readRequest(argv: readonly string[]): KeysRequest | 'help' {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: OPTIONS,
    allowPositionals: true,
  })
  if (values.help) return 'help'
  const [command, surplus] = positionals
  if (command === undefined) throw new Error('missing command: generate, rotate or list')
  if (!isCommand(command)) throw new Error(`unknown command ${command}`)
  if (surplus !== undefined) throw new Error(`${command}: unexpected argument ${surplus}`)
  const allowed: readonly string[] = ['file', ...COMMANDS[command]]
  for (const name of Object.keys(values)) {
    if (!allowed.includes(name)) throw new Error(`${command}: unknown option --${name}`)
  }
  if (values.file === '') throw new Error('--file must not be empty')
  const algorithms = (values.alg ?? []).map(algorithm)
  if (command === 'rotate' && algorithms.length > 1)
    throw new Error('rotate: --alg may be given once')
  const { file, force = false, json = false } = values
  return { command, file, algorithms, force, json }
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name)
}

function algorithm(name: string): SigningAlgorithm {
  const known = SIGNING_ALGORITHMS.find((one) => one === name)
  if (known === undefined) throw new Error(`--alg must be ${SIGNING_ALGORITHMS.join(', ')}`)
  return known
}
