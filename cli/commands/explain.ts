/** `portcullis explain`: why a request is allowed or refused, stage by stage. */
import type { Command } from '@commander-js/extra-typings'
import { repeated, seconds } from '../arguments.ts'
import { alias, offlineCommand } from '../command.ts'

const HELP = `
Runs the request through the pipeline of the gateway in this process, with the policy of the project and
without Redis: limits, bans and revocations are new. Nothing is sent to an origin. Without --subject, --role,
--scope and --token-stdin the caller is anonymous.

With --token-stdin, the claims of a JWT are used, with roles in the claim \`roles\`. Its signature, issuer and
audience are not verified; \`portcullis idp doctor\` and --live verify them.
No token is printed.

With --live, the running gateway explains the request with its present state: limits, bans, revocations,
relations. No limit counts the request. The client needs the permission portcullis:requests:explain.

With --request-id, method, path pattern, caller and address come from the event in the audit trail of
the gateway (--live, or PORTCULLIS_URL). The trail has no path, no body and no query: name the path as an
argument, and roles with --role if the event has none.

Exit codes: 0 allowed, 1 refused, 2 wrong usage, 3 a dependency of the gateway failed, or no answer.`

export function addExplainCommand(program: Command): void {
  const command = offlineCommand(program, {
    name: 'explain',
    does: 'explain why a request is allowed or refused, stage by stage',
    examples: [
      'portcullis explain GET /orders/1 --subject alice --role reader',
      `portcullis explain POST /orders --subject bob --role writer --body '{"item":"book"}' --json`,
      "portcullis explain GET /orders/1 --subject alice --role reader --relation 'order:1#viewer@user:alice'",
      'portcullis explain GET /orders/1 --token-stdin --live https://api.example.com < token.txt',
      'portcullis explain --request-id 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c --role reader',
    ],
  })
    .argument('[method]', 'method of the request')
    .argument('[path]', 'path and query of the request')
    .option('--policy <file>', 'the policy (default: that of the project)')
    .option('--subject <subject>', 'subject of the caller')
    .option('--role <role>', 'role of the caller; repeatable', repeated)
    .option('--scope <scope>', 'scope of the caller; repeatable', repeated)
    .option('--client <id>', 'client of the caller')
    .option('--tenant <tenant>', 'tenant of the caller')
    .option('--issuer <issuer>', 'issuer of the caller (default: the first that the policy names)')
    .option('--acr <class>', 'authentication context class of the login of the caller')
    .option('--login-age <time>', 'time since that login, such as 90s or 15m', seconds)
    .option('--token-stdin', 'read a token from standard input, in place of these options')
    .option('--host <host>', 'host of the request, for routes with a host')
    .option('--header <header>', 'a header, such as "Accept: text/html"; repeatable', repeated)
    .option('--body <text>', 'body of the request, JSON without a Content-Type')
    .option('--address <address>', 'client address (default: 192.0.2.1)')
    .option(
      '--relation <tuple>',
      'a relation that the caller has, object#relation@subject; repeatable',
      repeated,
    )
    .option('--request-id <id>', 'explain the request of an event in the audit trail')
    .option('--live [url]', 'ask the running gateway (default: PORTCULLIS_URL)')
    .option('--client-id <id>', "the operator's client id (default: PORTCULLIS_CLIENT_ID)")
    .addHelpText('after', HELP)
    .action(async (method, path, options) => {
      const { explainRequest } = await import('../policy-tools.ts')
      await explainRequest(method, path, options)
    })
  alias(command, 'as', 'subject')
}
