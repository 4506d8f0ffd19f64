import {
  anyOf,
  bitsOf,
  DECISIVE,
  endOfMatch,
  NOTABLE,
  oneOf,
  type SignatureSet,
} from './signature-set.ts'

const SCORES = {
  chained: DECISIVE,
  substituted: DECISIVE,
  bare: NOTABLE,
  shell_idiom: NOTABLE,
  foreign_code: DECISIVE,
}
const BIT = bitsOf(SCORES)

/** No rule below matches a text without one of these. */
const SUSPICIOUS = /[;|&`\n(]|\$[{I]|\/dev\/|\/bin\/|cmd|powershell|<!--#/i
/** A separator, text that may disguise the command after it, and the command's folder. */
const SEPARATOR =
  /(?:;|\|\|?|&&?|\n|\$\(|`|[<>]\()[\s;|&(!`$]{0,8}(?:\$\{?ifs\}?(?:\$\d)?)?(?:sudo\s{1,4}|time\s{1,4}|(?:\.|[a-z]:|%\w{1,20}%)?[/\\](?:[\w.]{1,20}[/\\]){0,4})?/gi
/** Command names that are not natural-language words. */
const NAMED = anyOf(
  'iy',
  oneOf(
    'whoami uname ifconfig ipconfig netstat nslookup systeminfo tasklist pwsh certutil bitsadmin',
    'bash zsh wget curl ncat netcat telnet chmod chown printenv mkfifo crontab rundll32 regsvr32',
    'wmic python[23]? perl ruby xxd traceroute tcpdump lsof awk phpinfo useradd adduser getent',
    'busybox netsh schtasks vssadmin',
    String.raw`powershell(?:\.exe)? cmd(?:\.exe)?`,
    String.raw`reg(?=\s{1,4}(?:add|query|delete)\b)`,
    String.raw`net(?=\s{1,4}(?:user|localgroup|view|share|start|group)\b)`,
  ) + String.raw`(?=$|[\s;|&\x60)"'<>/+$#,(])`,
)
/** Command names that are also words, with arguments that are typical of commands. */
const WORDED = anyOf(
  'iy',
  oneOf(
    'id ls dir cat tac nl od echo printf ping6? sleep timeout env set ps pwd type net rm cp mv',
    'find touch kill more less head tail sort date who w which where host hostname dig shutdown reboot',
    'sh ksh dash sed grep ssh scp ftp tftp nc php node base64 tee exec eval source export del copy',
    'start ver arp route locate su gcc rev strings passwd groups mail socat xargs nohup setenv',
  ) +
    oneOf(
      // Options, folders, variables, redirections, quotes.
      String.raw`(?=\s{1,4}(?:-{1,2}[a-z]|\/[a-z?]|~\/|\*))`,
      String.raw`(?=\s{0,4}(?:\$|%\w|>|<|\.\.?\/|\\|"|'))`,
      // Numbers, hosts, files, a word and another separator, drives.
      String.raw`\s{1,4}(?=-{0,2}\d|https?:|[\w-]{1,40}\.[\w.-]{1,40}|localhost)`,
      String.raw`\s{1,4}(?=\w{1,20}\s{0,2}[|>]|[a-z]:[\\/])`,
      String.raw`(?=\$\{?ifs|\{)`,
    ),
)
/** Commands that need no argument. */
const ALONE =
  /(?:id|ls|dir|ps|pwd|env|set|ver|w|who|date|hostname|whoami|sh|arp|reboot|groups)(?=\s{0,4}(?:$|[;&#`)"'\n]|\|\|?\s{0,2}$))/iy
/** Disguised commands such as `c'a't`, `wh\oami` and `/b??/c?t`, which do not occur by accident. */
const DISGUISED = anyOf(
  'iy',
  String.raw`(?:[a-z]{1,3}(?:''|""|\\(?=[a-z])|'[a-z]{1,3}'|"[a-z]{1,3}"|\$@|\$\*)){1,3}` +
    String.raw`[a-z]{1,8}(?=[\s/;|&\x60)<$]|$)`,
  String.raw`\/?[a-z?*]{1,6}(?:\/[a-z?*]{1,6}){0,2}\/[a-z]{0,4}[?*]{1,4}[a-z?*]{0,6}\s`,
  String.raw`\{(?:cat|ls|id|ping|curl|wget|echo|nc|bash|sleep),`,
)
/** Shell syntax that does not occur in prose. */
const IDIOM = anyOf(
  'i',
  String.raw`\/dev\/(?:tcp|udp)\/|\$\{?IFS\}?|\/bin\/(?:ba|da|k|z|tc)?sh\b`,
  String.raw`\bcmd(?:\.exe)?\s{1,4}\/[ck]\b`,
  String.raw`\bpowershell(?:\.exe)?\s{1,4}-(?:e|enc|encodedcommand|nop|w|c|command|ep|exec)\b`,
  String.raw`\bnc\s{1,4}-[a-z]{0,4}[elp]|\bbash\s{1,4}-[ic]\b|\|\s{0,4}(?:ba|z)?sh\s{0,4}$`,
)
/**
 * CVE-2014-6271: a function definition in a variable, with code after its end. Also a server-side
 * include directive, and a call in PHP or Python at the start of a value that runs its argument.
 */
const FOREIGN_CODE = anyOf(
  'i',
  String.raw`\(\)\s{0,4}\{\s{0,4}(?::|_|\w{1,10})\s{0,4};?[^}]{0,20}\}\s{0,4};`,
  String.raw`<!--#(?:exec|include)\s`,
  String.raw`^[\s;|&'"{}$@().<?=]{0,12}(?:php\s{1,4}|print\s{0,2}\(?)?@?` +
    oneOf(
      'system passthru shell_exec popen proc_open pcntl_exec phpinfo __import__',
      String.raw`(?:exec|eval|assert)(?=\s{0,2}\(\s{0,2}["'$\x60])`,
      String.raw`os\.system os\.popen subprocess\.\w{3,12} runtime\.getruntime`,
    ) +
    String.raw`\s{0,2}\(`,
)

/** Limits of the text before the separator: an argument has few words, prose has many. */
const MAX_LEADING_WORDS = 3
const MAX_LEADING_CHARS = 120
/** A value such as a file or a host, which may be a command's argument. */
const ARGUMENT = /^["'\w./:@=?+,%-]{0,100}["')\]}]{0,3}\s{0,4}$/
const ONE_WORD = /^\S{0,100}$/
/** A command's name in a Markdown table: `| bash   | yes |`. */
const TABLE_CELL = /[\w.-]{1,20}`?\s{1,80}\|(?!\|)/y
/** Capitalized words, because no shell command is written like a name. */
const TITLE = /^[A-Z][a-z]/
const WORDLIKE = /^[a-z]{0,40}$/i

export const commandInjection: SignatureSet = {
  category: 'command_injection',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    let found = IDIOM.test(text) ? BIT.shell_idiom : 0
    if (FOREIGN_CODE.test(text)) found |= BIT.foreign_code
    SEPARATOR.lastIndex = 0
    let separator = SEPARATOR.exec(text)
    while (separator !== null && isLeading(text, separator.index)) {
      found |= foundAt(text, separator.index, SEPARATOR.lastIndex)
      separator = SEPARATOR.exec(text)
    }
    return found
  },
}

/** Returns the rules that match the text after the separator from `start` to `end`. */
function foundAt(text: string, start: number, end: number): number {
  const isNamed = matchesAt(NAMED, text, end) || matchesAt(DISGUISED, text, end)
  const isAlone = matchesAt(ALONE, text, end)
  if (!isNamed && !isAlone && !matchesAt(WORDED, text, end)) return 0
  if (matchesAt(TABLE_CELL, text, end) || TITLE.test(text.slice(end, end + 2))) return 0
  const before = text.slice(0, start)
  if (text[start] === '$' || text[start] === '`')
    return isWholeValue(text, before, start) ? BIT.substituted : 0
  const isAt = /[/\\]/.test(text.slice(start, end))
  if (isNamed || isAt || matchesAt(WORDED, text, end)) return BIT.chained
  const value = before.trim()
  return ARGUMENT.test(before) && (value === '' || !WORDLIKE.test(value)) ? BIT.chained : BIT.bare
}

/**
 * Reports whether the value consists of the substitution and an argument. With other words around
 * it, the text is a sentence, and the backticks are Markdown.
 */
function isWholeValue(text: string, before: string, start: number): boolean {
  if (text[start] === '$') return ARGUMENT.test(before)
  const close = text.indexOf('`', start + 1)
  return ONE_WORD.test(before) && (close === -1 || ONE_WORD.test(text.slice(close + 1, close + 50)))
}

/** Reports whether the text before a separator is short enough to be a command's argument. */
function isLeading(text: string, start: number): boolean {
  if (start > MAX_LEADING_CHARS) return false
  const before = text.slice(0, start).trim()
  return !before.includes('\n') && before.split(/\s{1,20}/).length <= MAX_LEADING_WORDS
}

const matchesAt = (pattern: RegExp, text: string, at: number): boolean =>
  endOfMatch(pattern, text, at) > at
