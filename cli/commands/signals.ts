/** `portcullis signals`: the streams of transmitters that send security events. */
import type { Command } from '@commander-js/extra-typings'
import { offlineCommand } from '../command.ts'

const HELP = `
<transmitter> is the issuer of its events. Calls have a token of its entry in SIGNAL_TRANSMITTERS:
accessToken, or one that client gets. SIGNAL_TRANSMITTERS and PUBLIC_URL are read from the environment,
or else from the file of --values or from .dev.vars.

Exit codes: 0 done, 1 refused by the transmitter, 2 wrong usage, 3 no answer.`

export function addSignalCommands(program: Command): void {
  const signals = program
    .command('signals')
    .description('streams of security events from identity providers')
  offlineCommand(signals, {
    name: 'connect',
    does: 'create a stream, or find the present one, and request a verification event',
    examples: [
      'portcullis signals connect https://example.okta.com',
      'portcullis signals connect https://idp.example.com --delivery poll',
      'portcullis signals connect https://idp.example.com --values gateway.env',
    ],
  })
    .argument('<transmitter>', 'the issuer of the events')
    .option('--delivery <method>', 'push or poll', 'push')
    .option('--endpoint <url>', 'receiver of pushed events (default: below PUBLIC_URL)')
    .option('--values <file>', 'file with values of variables (default: .dev.vars)')
    .addHelpText('after', HELP)
    .action(async (transmitter, options) => {
      const { connect } = await import('../signals/connect.ts')
      await connect(transmitter, options)
    })
  offlineCommand(signals, {
    name: 'disconnect',
    does: 'delete a stream',
    examples: ['portcullis signals disconnect https://example.okta.com --stream esc1k235GII'],
  })
    .argument('<transmitter>', 'the issuer of the events')
    .requiredOption('--stream <id>', 'the stream, as connect prints it')
    .option('--values <file>', 'file with values of variables (default: .dev.vars)')
    .addHelpText('after', HELP)
    .action(async (transmitter, options) => {
      const { disconnect } = await import('../signals/connect.ts')
      await disconnect(transmitter, options)
    })
}
