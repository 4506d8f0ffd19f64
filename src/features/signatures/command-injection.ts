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
const SEPARATOR = /;|\|\|?|&&?|\n|\$\(|`|[<>]\(/g
/** Text of any length that may disguise the command after a separator, and the command's folder. */
const DISGUISE =
  /(?:\$\{?ifs\}?(?:\$\d)?|[\s;|&(!`$])*(?:(?:sudo|time)\s+|(?:\.{1,2}|[a-z]:|%\w{1,20}%)?[/\\](?:[\w.]*[/\\])*)?/iy
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
      String.raw`\s{1,4}(?=-{0,2}\d|https?:|[\w-]{1,9999}\.[\w.-]|localhost)`,
      String.raw`\s{1,4}(?=\w{1,9999}\s{0,2}[|>]|[a-z]:[\\/])`,
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
  String.raw`^[\s;|&'"{}$@().<?=]*(?:php\s{1,4}|print\s{0,2}\(?)?@?` +
    oneOf(
      'system passthru shell_exec popen proc_open pcntl_exec phpinfo __import__',
      String.raw`(?:exec|eval|assert)(?=\s{0,2}\(\s{0,2}["'$\x60])`,
      String.raw`os\.system os\.popen subprocess\.\w{3,12} runtime\.getruntime`,
    ) +
    String.raw`\s{0,2}\(`,
)

/**
 * The text before which a separator is suspicious: three words of any length in one line. An
 * argument has few words, prose has many.
 */
const LEADING = /^\s*(?:\S+(?:[^\S\n]+\S+){0,2}\s*)?/
/** A value such as a file or a host, which may be a command's argument. */
const ARGUMENT = /^["'\w./:@=?+,%-]*["')\]}]{0,3}\s*/
const FIRST_WORD = /^\S*/
/** The text that must have no space behind a substitution. */
const ONE_WORD = /^\S{0,50}$/
/** A command's name in a Markdown table: `| bash   | yes |`. */
const TABLE_CELL = /[\w.-]{1,20}`?\s+\|(?!\|)/y
/** The rest of such a table's row after two words. In a shell, a pipe at the end is an error. */
const TABLE_ROW = /[\w.-]{1,20} [\w.-]{1,20}\s+\|\s[^|]*\s\|\s*$/y
/** The rest of an assignment to a variable of PHP, after its `$`. */
const ASSIGNED = /\w{1,40}\s{0,4}=(?!=)/y
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
    return found | separatedIn(text)
  },
}

/** The ends of the leading parts of a text, read once for all its separators. */
interface Opening {
  readonly argument: number
  readonly word: number
}

/** Returns the rules that match the text after one of the leading separators. */
function separatedIn(text: string): number {
  SEPARATOR.lastIndex = 0
  let separator = SEPARATOR.exec(text)
  if (separator === null) return 0
  const leading = lengthOf(LEADING, text)
  const opening = { argument: lengthOf(ARGUMENT, text), word: lengthOf(FIRST_WORD, text) }
  let found = 0
  while (separator !== null && separator.index <= leading) {
    const end = endOfMatch(DISGUISE, text, SEPARATOR.lastIndex)
    found |= foundAt(text, separator.index, end, opening)
    SEPARATOR.lastIndex = end
    separator = SEPARATOR.exec(text)
  }
  return found
}

/** Returns the rules that match the text after the separator and its disguise. */
function foundAt(text: string, start: number, end: number, opening: Opening): number {
  if (text[end - 1] === '$' && matchesAt(ASSIGNED, text, end)) return 0
  const isNamed = matchesAt(NAMED, text, end) || matchesAt(DISGUISED, text, end)
  const isAlone = matchesAt(ALONE, text, end)
  if (!isNamed && !isAlone && !matchesAt(WORDED, text, end)) return 0
  if (text[start] === '|' && matchesAt(TABLE_ROW, text, end)) return 0
  if (matchesAt(TABLE_CELL, text, end) || TITLE.test(text.slice(end, end + 2))) return 0
  if (text[start] === '$' || text[start] === '`')
    return isWholeValue(text, start, opening) ? BIT.substituted : 0
  const isAt = /[/\\]/.test(text.slice(start, end))
  if (isNamed || isAt || matchesAt(WORDED, text, end)) return BIT.chained
  if (start > opening.argument) return BIT.bare
  const value = text.slice(0, start).trim()
  return value === '' || !WORDLIKE.test(value) ? BIT.chained : BIT.bare
}

/**
 * Reports whether the value consists of the substitution and an argument. With other words around
 * it, the text is a sentence, and the backticks are Markdown.
 */
function isWholeValue(text: string, start: number, opening: Opening): boolean {
  if (text[start] === '$') return start <= opening.argument
  if (start > opening.word) return false
  const close = text.indexOf('`', start + 1)
  return close === -1 || ONE_WORD.test(text.slice(close + 1, close + 50))
}

const lengthOf = (pattern: RegExp, text: string): number => pattern.exec(text)?.[0].length ?? 0

const matchesAt = (pattern: RegExp, text: string, at: number): boolean =>
  endOfMatch(pattern, text, at) > at
