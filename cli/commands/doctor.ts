/** `portcullis doctor`: checks a deployment and what it depends on. */
import type { Command } from '@commander-js/extra-typings'
import { offlineCommand } from '../command.ts'
import { PRODUCTION } from '../deploy/environment.ts'

const HELP = `
Checks the variables of the gateway, Redis, the key sets of the issuers, the origin and wrangler.toml from
this machine, and with --url a running gateway, its queue and its audit trail. The most urgent finding
is the first. It changes nothing, except a key in Redis that expires after ten seconds. A provider of the
sign-in gets one login with a code that does not exist, which shows if it accepts the client. With --node,
and in a project without wrangler.toml, it checks the variables of portcullis serve, and the audit trail and
the proxies. In the folder of an app that guards its own routes it checks wrangler.toml, Redis, and with --url
the running app.

Exit codes: 0 no errors, 1 errors, 2 wrong usage. Warnings do not change the exit code.

Environment: the variables of the gateway (docs/environment.md), which override those of the file and of
[vars] in wrangler.toml; with --url also PORTCULLIS_CLIENT_ID and PORTCULLIS_CLIENT_SECRET.`

export function addDoctorCommand(program: Command): void {
  offlineCommand(program, {
    name: 'doctor',
    does: 'check a gateway or an app and what it depends on, and say how to correct each mistake',
    examples: [
      'portcullis doctor',
      'portcullis doctor --values .portcullis/production.env --url https://api.example.com',
      'portcullis doctor --node --values gateway.env --url http://127.0.0.1:8787',
      'portcullis doctor --config deploy/staging.ts --values staging.env',
      'portcullis doctor --json',
    ],
  })
    .option('--env <name>', 'environment, such as staging', PRODUCTION)
    .option('--config <file>', 'the policy (default: portcullis.config.ts, or .js)')
    .option('--values <file>', 'file with values (default: .portcullis/<env>.env)')
    .option('--url <gateway>', 'a running gateway to check as well')
    .option('--node', 'the gateway runs on Node')
    .addHelpText('after', HELP)
    .action(async (options) => {
      const { examineGateway } = await import('../examinations.ts')
      await examineGateway(options)
    })
}
