import { anyOf, bitsOf, DECISIVE, NOTABLE, oneOf, type SignatureSet } from './signature-set.ts'

const SCORES = {
  climb_to_target: DECISIVE,
  deep_climb: DECISIVE,
  climb: NOTABLE,
  disguised_climb: DECISIVE,
  target: DECISIVE,
}
const BIT = bitsOf(SCORES)

/** PATH_MAX of Linux. A longer text is not a valid path. */
const MAX_PATH_CHARS = 4_096
/** Imports and settings in large repositories seldom climb this far. */
const DEEP = 5
const NOTABLE_DEPTH = 3
/** No rule below matches a text without one of these. */
const SUSPICIOUS =
  /\.\.|%|\$[/\\]|[/\\](?:etc|proc|windows|winnt|var|root|home|self)[/\\]|^[a-z]:[/\\]/i
const CLIMBS = /\.\.[/\\]/g
/** A path at the start of a value. It contains no spaces, except in Windows' own folder names. */
const LEADING_PATH = /^[^\s<>"'`]{1,4096}(?: files(?: \(x86\))?[/\\][^\s<>"'`]{0,4096})?/i
/** Files and folders that attack tools try, because every machine of their kind has them. */
const FILES = anyOf(
  'i',
  String.raw`(?:^|[/\\])` +
    oneOf(
      String.raw`etc[/\\]{1,3}${oneOf(
        'passwd shadow group hosts issue motd sudoers crontab fstab environment profile os-release',
        String.raw`[a-z]{2,10}-release resolv\.conf my\.cnf`,
        String.raw`(?:ssh|apache2?|httpd|nginx|mysql)[/\\] php\d?[/\\]`,
      )}`,
      String.raw`proc[/\\](?:self|version|cmdline|cpuinfo|net|mounts|sched_debug|\d{1,6}[/\\])`,
      String.raw`(?:windows|winnt)[/\\]${oneOf(
        String.raw`win\.ini system\.ini system32 repair panther php\.ini debug iis\d?\.log`,
      )}`,
      String.raw`var[/\\](?:log|mail|spool)[/\\] usr[/\\]local[/\\](?:apache2?|etc)[/\\]`,
      String.raw`(?:\.ssh|\.aws|\.kube|web-inf|meta-inf|inetpub)[/\\] \.git[/\\](?:config|head)`,
      String.raw`\.htpasswd \.htaccess \.bash_history \.env$ id_rsa sam$ boot\.ini autoexec\.bat`,
      String.raw`ntuser\.dat wp-config\.php config\.inc\.php web\.config`,
    ),
)
/** An absolute path of a machine, as the whole value. */
const ABSOLUTE = anyOf(
  'i',
  String.raw`^(?:[a-z]:)?[/\\]{1,3}` +
    oneOf(
      String.raw`etc[/\\]{1,3}${oneOf(
        'passwd shadow group sudoers issue motd fstab crontab hosts',
        String.raw`master\.passwd security[/\\]passwd`,
      )}`,
      String.raw`proc[/\\](?:self|\d{1,6}|version|cmdline|net)(?:[/\\]|$) boot\.ini`,
      String.raw`(?:windows|winnt)[/\\](?:win\.ini|system\.ini|repair[/\\])`,
      String.raw`(?:windows|winnt)[/\\]system32[/\\](?:drivers[/\\]etc|config)`,
      String.raw`(?:root|home[/\\][^/\\]{1,32})[/\\]\.(?:ssh|bash_history|aws)`,
      String.raw`var[/\\]log[/\\](?:apache|httpd|nginx|auth|mail|syslog|messages)`,
    ),
)
/** A share for administrators of a Windows machine. */
const ADMIN_SHARE = /^[/\\]{2}[\w.:[\]-]{1,255}[/\\](?:[a-z]|admin)\$[/\\]/i
/** Encodings of a dot and of a path separator that decoders have accepted. */
const ODD_DOT = oneOf('%2e %252e %c0%[a2]e %e0%80%ae %uff0e')
const ODD_SEPARATOR = oneOf(
  '%2f %5c %252f %255c %c0%[a2]f %c1%9c %c1%1c %e0%80%af %u2215 %u2216 %uff0f',
)
/** Climbs that are encoded to avoid filters. */
const DISGUISED = anyOf(
  'i',
  String.raw`(?:\.|${ODD_DOT}){2}${ODD_SEPARATOR}`,
  String.raw`${ODD_DOT}{1,2}\.?[/\\]|\.%2e[/\\]|\.{4,6}(?:\/\/|\\\\)|\.{2,4};[/\\]`,
  String.raw`(?:\.\.\\\/){2}|(?:\.\.\/\\){2}|(?:\.{2,8}[/\\]{2,8}){2}|(?:\.{3,8}[/\\]){3}`,
  String.raw`\.\.%(?:u[ef][0-9a-f]{3}|c[01]%)|(?:%c0%[25]e){2}`,
  String.raw`(?:0x2e){2}|\.\.0x(?:2f|5c)|(?:\.\.2f){2}|\.\.(?:\u2215|\u2216|\uff0f|\uff3c)`,
)

export const pathTraversal: SignatureSet = {
  category: 'path_traversal',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    const path = LEADING_PATH.exec(text.slice(0, MAX_PATH_CHARS))?.[0]
    if (path === undefined) return 0
    const depth = path.match(CLIMBS)?.length ?? 0
    let found = DISGUISED.test(path) ? BIT.disguised_climb : 0
    if (depth >= DEEP) found |= BIT.deep_climb
    else if (depth >= NOTABLE_DEPTH) found |= BIT.climb
    if (depth > 0 && FILES.test(path)) found |= BIT.climb_to_target
    if ((ABSOLUTE.test(path) || ADMIN_SHARE.test(path)) && path.length >= text.trimEnd().length)
      found |= BIT.target
    return found
  },
}
