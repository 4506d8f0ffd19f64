/** Signatures of path traversal: a value that is a path, and leads where no caller's files are. */
import { DECISIVE, NOTABLE, type SignatureSet } from './signature-set.ts'

const CLIMB_TO_TARGET = 1
const DEEP_CLIMB = 2
const CLIMB = 4
const DISGUISED_CLIMB = 8
const TARGET = 16

/** PATH_MAX of Linux; what is longer is no path to it. */
const MAX_PATH_CHARS = 4_096
/** Imports and settings climb so far in large repositories, and seldom farther. */
const DEEP = 5
const NOTABLE_DEPTH = 3
/** Nothing below matches without one of these. */
const SUSPICIOUS = /\.\.|%|[/\\](?:etc|proc|windows|winnt|var|root|home|self)[/\\]|^[a-z]:[/\\]/i
const CLIMBS = /\.\.[/\\]/g
/** A path as a value: without blanks, but for those of Windows' own folders. */
const LEADING_PATH = /^[^\s<>"'`]{1,4096}(?: files(?: \(x86\))?[/\\][^\s<>"'`]{0,4096})?/i
/** What stands in many lists of interesting files, because it is on every such machine. */
const FILES =
  /(?:^|[/\\])(?:etc[/\\]{1,3}(?:passwd|shadow|group|hosts|issue|motd|sudoers|crontab|fstab|resolv\.conf|ssh[/\\]|apache2?[/\\]|httpd[/\\]|nginx[/\\]|mysql[/\\]|my\.cnf|php\d?[/\\]|environment|profile|os-release|[a-z]{2,10}-release)|proc[/\\](?:self|version|cmdline|cpuinfo|net|mounts|sched_debug|\d{1,6}[/\\])|(?:windows|winnt)[/\\](?:win\.ini|system\.ini|system32|repair|panther|php\.ini|debug|iis\d?\.log)|boot\.ini|(?:\.ssh|\.aws|\.kube)[/\\]|\.git[/\\](?:config|head)|\.htpasswd|\.htaccess|\.bash_history|\.env$|web-inf[/\\]|meta-inf[/\\]|var[/\\]log[/\\]|var[/\\](?:mail|spool)[/\\]|usr[/\\]local[/\\](?:apache2?|etc)[/\\]|inetpub[/\\]|wp-config\.php|config\.inc\.php|web\.config|autoexec\.bat|ntuser\.dat|sam$|id_rsa)/i
/** As a whole value, and as an absolute path of a machine. */
const ABSOLUTE =
  /^(?:[a-z]:)?[/\\]{1,3}(?:etc[/\\]{1,3}(?:passwd|shadow|group|sudoers|master\.passwd|security[/\\]passwd|issue|motd|fstab|crontab|hosts)|proc[/\\](?:self|\d{1,6}|version|cmdline|net)(?:[/\\]|$)|(?:windows|winnt)[/\\](?:win\.ini|system\.ini|system32[/\\](?:drivers[/\\]etc|config)|repair[/\\])|boot\.ini|(?:root|home[/\\][^/\\]{1,32})[/\\]\.(?:ssh|bash_history|aws)|var[/\\]log[/\\](?:apache|httpd|nginx|auth|mail|syslog|messages))/i
/** Climbs that are spelled so that a filter sees none. */
const DISGUISED =
  /(?:\.|%2e|%252e|%c0%[a2]e|%e0%80%ae|%uff0e){2}(?:%2f|%5c|%252f|%255c|%c0%[a2]f|%c1%9c|%c1%1c|%e0%80%af|%u2215|%u2216|%uff0f)|(?:%2e|%252e|%c0%[a2]e|%e0%80%ae|%uff0e){1,2}\.?[/\\]|\.%2e[/\\]|\.{4,6}(?:\/\/|\\\\)|\.{2,4};[/\\]|(?:\.\.\\\/){2}|(?:\.\.\/\\){2}|(?:\.{2,8}[/\\]{2,8}){2}|(?:\.{3,8}[/\\]){3}|\.\.%(?:u[ef][0-9a-f]{3}|c[01]%)|(?:%c0%[25]e){2}|(?:0x2e){2}|\.\.0x(?:2f|5c)|(?:\.\.2f){2}|\.\.(?:\u2215|\u2216|\uff0f|\uff3c)/i

export const pathTraversal: SignatureSet = {
  category: 'path_traversal',
  rules: [
    ['climb_to_target', DECISIVE],
    ['deep_climb', DECISIVE],
    ['climb', NOTABLE],
    ['disguised_climb', DECISIVE],
    ['target', DECISIVE],
  ],
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    const path = LEADING_PATH.exec(text.slice(0, MAX_PATH_CHARS))?.[0]
    if (path === undefined) return 0
    const depth = path.match(CLIMBS)?.length ?? 0
    let found = DISGUISED.test(path) ? DISGUISED_CLIMB : 0
    if (depth >= DEEP) found |= DEEP_CLIMB
    else if (depth >= NOTABLE_DEPTH) found |= CLIMB
    if (depth > 0 && FILES.test(path)) found |= CLIMB_TO_TARGET
    if (ABSOLUTE.test(path) && path.length >= text.trimEnd().length) found |= TARGET
    return found
  },
}
