/** `portcullis audit verify`: checks that the audit trail was not modified after it was written. */
import type { Command } from '@commander-js/extra-typings'
import { publicKeysIn } from '../checkpoints.ts'
import { type CommonOptions, onlineCommand, workWith } from '../command.ts'
import { readExports } from '../exports.ts'
import { REFUSED, usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { counted, line, type Style, table } from '../text.ts'
import { readText } from '../text-file.ts'
import { type ChainPage, type Verdict, verifyChain } from '../verify.ts'

interface VerifyOptions extends CommonOptions {
  readonly jwks?: string
  readonly file?: readonly string[]
  readonly andGateway?: boolean
}

const FINDING_COLUMNS = ['seq', 'kind', 'detail']

export function addVerify(audit: Command): void {
  onlineCommand(audit, {
    name: 'verify',
    does: 'compute the hashes of the audit trail again, and report each row that was changed, removed or moved',
    examples: [
      'portcullis audit verify',
      'portcullis audit verify --jwks signing-keys-audit.json --json',
      'portcullis audit verify --file exports/ --and-gateway',
    ],
  })
    .option('--jwks <file>', 'keys of the audit Worker, public or private, to check signatures')
    .option('--file <paths...>', 'exported files, or folders of them, instead of the gateway')
    .option('--and-gateway', 'with --file: continue with the rows of the gateway after them')
    .addHelpText('after', '\nExit code 1 if the chain was changed.')
    .action(async (options) => {
      if (options.andGateway && options.file === undefined) {
        throw usage('--and-gateway requires --file')
      }
      const keys = options.jwks === undefined ? undefined : keysOf(options.jwks)
      const verdict = await verdictOf(options, keys)
      const output = createOutput(options.json ?? false)
      output.result(verdict, textOf(verdict, output.style))
      if (!verdict.ok) process.exitCode = REFUSED
    })
}

async function verdictOf(
  options: VerifyOptions,
  keys: Awaited<ReturnType<typeof keysOf>> | undefined,
): Promise<Verdict> {
  const { file, andGateway = false } = options
  const files = file && (await readExports(file))
  if (files !== undefined && !andGateway) {
    return verifyChain(files.reader(), keys, files.extent)
  }
  const { gateway } = workWith(options)
  const fetchPage = (after: number) => gateway.get<ChainPage>('/audit/chain', { after })
  if (files === undefined) return verifyChain(fetchPage, keys)
  return verifyChain(files.reader(fetchPage), keys, { from: files.extent.from })
}

function keysOf(file: string) {
  try {
    return publicKeysIn(readText(file))
  } catch {
    throw usage(`--jwks: ${file} does not contain a JWK Set`)
  }
}

function textOf(verdict: Verdict, style: Style): string {
  const { events, first, last, checkpoints, signed, sealed, findings } = verdict
  const { unchained, erased, unexplained, unproven } = verdict
  const signatures =
    signed === null ? 'signatures not checked (--jwks)' : `${signed} signed, up to row ${sealed}`
  const elsewhere =
    unexplained === 0 ? '' : `, ${unexplained} of them by erasures that are not in these rows`
  const lines = [
    events === 0
      ? 'no events in the chain'
      : `${counted(events, 'event')}, rows ${first} to ${last}`,
    `${counted(checkpoints, 'checkpoint')}, ${signatures}`,
    ...(erased === 0 ? [] : [`${counted(erased, 'row')} erased${elsewhere}`]),
    ...unproven.map(
      ({ from, to }) =>
        `rows ${from} to ${to} are not proven, because row ${to} is an erased one of the first format`,
    ),
    ...(unchained === 0 ? [] : [`${counted(unchained, 'row')} outside of the chain, not verified`]),
    ...(verdict.hash === null ? [] : [`the last hash is ${line(verdict, ['hash'])}`]),
  ]
  return verdict.ok
    ? `${style.colors.green('ok:')} ${lines.join('\n')}`
    : `${style.colors.red('NOT OK:')} ${lines.join('\n')}\n${table(findings, FINDING_COLUMNS, style)}`
}
