/** The log of commands that Redis refuses, which is no outage of the whole server. */

const PAUSE_MS = 60_000
/** By the code at the beginning of the reply. The rest of the text may name keys. */
const REASONS: Readonly<Record<string, string>> = {
  BUSY: 'a script has run for too long',
  CLUSTERDOWN: 'the cluster is down',
  LOADING: 'it still loads its data',
  MASTERDOWN: 'it is a replica without its master',
  MISCONF: 'it cannot store its data',
  NOAUTH: 'it requires a login',
  NOPERM: 'its user may not run the command or use the key',
  NOREPLICAS: 'it has too few replicas',
  OOM: 'its memory is full',
  READONLY: 'it is a replica',
}

/**
 * Creates the log of one socket: the code of an error reply, each code once a minute. Codes of single commands, such as
 * `NOSCRIPT`, are not logged. The admission script hides the refused write of a limit.
 */
export function refusalLog(): (error: string) => void {
  const loggedMs = new Map<string, number>()
  return function log(error) {
    const [code = ''] = error.split(' ', 1)
    const reason = REASONS[code]
    const nowMs = performance.now()
    if (reason === undefined || nowMs - (loggedMs.get(code) ?? -PAUSE_MS) < PAUSE_MS) return
    loggedMs.set(code, nowMs)
    console.error(`redis: refuses commands (${code}: ${reason}); requests may get 503`)
  }
}
