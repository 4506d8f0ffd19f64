/** Shows a gateway that is ready, and reads the keys of the terminal. */
import type { Live, Ready } from '../../cli/live/live.ts'
import { startSession } from '../../cli/live/session.ts'
import { DEMO_SUBJECT, tokenArguments } from './examples.ts'
import { localToken } from './local-token.ts'
import type { Prepared } from './prepare.ts'
import { print } from './prepare.ts'
import type { Project } from './project.ts'
import type { Shutdown } from './shutdown.ts'

const TOKEN_SECONDS = 3_600

export interface ShowOptions extends Pick<Prepared, 'settings' | 'vars' | 'features'> {
  readonly project: Project
  readonly url: string
  readonly live: Live
  readonly shutdown: Shutdown
  reload(): unknown
}

/** Shows where the gateway is and what to try, and reads keys until `shutdown`. */
export async function show(options: ShowOptions): Promise<void> {
  const { project, url, live, shutdown, settings, vars, features, reload } = options
  const { policyFile } = settings
  const { role, examples } = await project.demo({ url, vars, features, policyFile })
  shutdown.signal.throwIfAborted()
  const ready: Ready = {
    url,
    console: features.console ? `${url}/-/console` : undefined,
    docs: features.openapi ? `${url}/-/docs` : undefined,
    token: `${project.tokenCommand} ${tokenArguments(DEMO_SUBJECT, role)}`,
    examples,
  }
  live.ready(ready)
  const request = {
    subject: DEMO_SUBJECT,
    client: 'dev',
    roles: [role],
    ttlSeconds: TOKEN_SECONDS,
  }
  startSession({
    ready,
    token: () => localToken(request, project.root, vars),
    reload,
    quit: () => void shutdown.exit(0),
    signal: shutdown.signal,
    print,
  })
}
