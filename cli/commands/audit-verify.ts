/** `portcullis audit verify`: whether the audit trail is what the audit Worker wrote. */
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { publicKeysIn } from '../checkpoints.ts'
import { type CommonOptions, onlineCommand, workWith } from '../command.ts'
import { REFUSED, usage } from '../failure.ts'
import { line, table } from '../text.ts'
import { type ChainPage, type Verdict, verifyChain } from '../verify.ts'

interface VerifyOptions extends CommonOptions {
  readonly jwks?: string
}

const FINDING_COLUMNS = ['seq', 'kind', 'detail']

export function addVerify(audit: Command): void {
  onlineCommand(audit, {
    name: 'verify',
    does: 'compute the hashes of the audit trail anew, and say which row was changed, removed or moved',
    examples: [
      'portcullis audit verify',
      'portcullis audit verify --jwks signing-keys-audit.json --json',
    ],
  })
    .option('--jwks <file>', 'keys of the audit Worker, public or private: checks signatures, too')
    .addHelpText('after', '\nExit code 1 if anything is not as it was.')
    .action(async (options: VerifyOptions) => {
      const { gateway, output } = workWith(options)
      const keys = options.jwks === undefined ? undefined : await keysOf(options.jwks)
      const verdict = await verifyChain(
        (after) => gateway.get<ChainPage>('/audit/chain', { after }),
        keys,
      )
      output.result(verdict, told(verdict))
      if (!verdict.ok) process.exitCode = REFUSED
    })
}

async function keysOf(file: string) {
  try {
    return publicKeysIn(await readFile(file, 'utf8'))
  } catch {
    throw usage(`--jwks: ${file} is no file with a JWK Set`)
  }
}

function told(verdict: Verdict): string {
  const { events, first, last, checkpoints, signed, sealed, unchained, findings } = verdict
  const signatures =
    signed === null ? 'signatures not checked (--jwks)' : `${signed} signed, up to row ${sealed}`
  const lines = [
    events === 0 ? 'no events in the chain' : `${events} events, rows ${first} to ${last}`,
    `${checkpoints} checkpoints, ${signatures}`,
    ...(unchained === 0 ? [] : [`${unchained} rows outside of the chain, which nothing proves`]),
    ...(verdict.hash === null ? [] : [`the last hash is ${line(verdict, ['hash'])}`]),
  ]
  return verdict.ok
    ? `ok: ${lines.join('\n')}`
    : `NOT OK: ${lines.join('\n')}\n${table(findings, FINDING_COLUMNS)}`
}
