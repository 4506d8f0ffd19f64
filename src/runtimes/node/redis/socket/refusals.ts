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

/** Scripts may hide these: the refused write of a limit concerns this limit only. */
const HIDDEN = ['OOM', 'MISCONF', 'NOREPLICAS'] as const
/** An error of a script of Redis 6.2, with that of its command inside. */
const IN_SCRIPT = /^ERR .*: -([A-Z]+) /

/**
 * Creates the log of one socket: the code of an error reply, each code once a minute. Codes of single commands, such as
 * `NOSCRIPT`, are not logged.
 */
export function refusalLog(): (error: string) => void {
  const loggedMs = new Map<string, number>()
  return function log(error) {
    const code = IN_SCRIPT.exec(error)?.[1] ?? error.split(' ', 1)[0] ?? ''
    const reason = REASONS[code]
    const nowMs = performance.now()
    if (reason === undefined || nowMs - (loggedMs.get(code) ?? -PAUSE_MS) < PAUSE_MS) return
    loggedMs.set(code, nowMs)
    console.error(`redis: refuses commands (${code}: ${reason}); requests may get 503`)
  }
}

/**
 * Returns a function that reads `INFO errorstats`, and logs refusals that the server has counted since the last reading,
 * by any client. The first reading of a connection logs nothing. Servers without these counts log nothing.
 */
export function hiddenRefusals(
  log: (error: string) => void,
): (info: string, isFirst?: boolean) => void {
  let before: readonly number[] = []
  return function read(info, isFirst = false) {
    const counts = HIDDEN.map((code) =>
      Number(new RegExp(`^errorstat_${code}:count=(\\d+)`, 'm').exec(info)?.[1] ?? 0),
    )
    if (!isFirst)
      for (const [at, code] of HIDDEN.entries())
        if ((counts[at] ?? 0) > (before[at] ?? 0)) log(code)
    before = counts
  }
}
