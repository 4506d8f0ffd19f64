// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts that look like code
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { inspected } from '../../inspection/app.ts'

const INPUTS = 2_000
const TOTAL_BYTES = 10 * 1_048_576
const LONG_CHARS = 60_000

/** Ordinary prose, names, code and data, much of it similar to patterns of attacks. */
const SEEDS: readonly string[] = [
  // Names in their own scripts.
  "Seán O'Brien, D’Angelo & Søn A/S — née Müller-Lüdenscheidt",
  'Владимир Ильич Ковальчук, Ђорђе, Ἀριστοτέλης, Հովհաննես',
  'محمد بن عبد الله الخوارزمي، یاسمن، שרה בת־אל, ܡܪܝ',
  '王小明 田中さん 김민준 ひらがな カタカナ ภาษาไทย नमस्ते தமிழ் አማርኛ မြန်မာ ខ្មែរ',
  'Zoë 👩‍👩‍👧‍👦 👋🏽 🇨🇭 é combining, ﬁ ligature, ＡＢＣ full width, ‮right to left‬',
  'Robert Tables; Union Select Committee; Mr. Null; Ms. True; Drop Zone Ltd.',
  // Prose about dangerous things.
  'To remove a user, run DELETE FROM users WHERE id = 1; then select * from the menu or 1=1 of the dishes -- thanks!',
  "The union selected a committee' OR so the minutes said; drop table 5 by the window; insert coin; update your address.",
  'Write <script>alert("hello")</script> to see why <b onclick="go()">escaping</b> matters & javascript: links too.',
  'cd ../../etc && cat passwd | grep root; rm -rf ./build; echo $(whoami) `date` ${HOME} > /dev/null 2>&1',
  'Visit http://169.254.169.254/latest or http://localhost:8080/admin?x=1#frag, file:///C:/Windows/System32 and \\\\server\\share',
  '{{ user.name }} <%= title %> ${jndi:ldap://example.com/a} #{1+1} [[nested]] (((parens))) %s %d %n %2e%2e%2f %00',
  // Code.
  'class A { constructor() { this.__proto__ = null; Object.prototype.x = 1 } }\nconst f = (a) => a?.b ?? `t${a}`',
  "SELECT o.id, COUNT(*) FROM orders o LEFT JOIN items i ON i.order_id = o.id WHERE o.x = 'a''b' GROUP BY 1 HAVING COUNT(*) > 2;",
  '#include <stdio.h>\r\nint main(void) {\r\n\tprintf("%s\\n", "\\x41\\0");\r\n\treturn 0;\r\n}\r\n',
  "def f(x: int) -> str:\n    '''Doc; eval(x), exec, __import__('os')'''\n    return f'{x!r:>10}'",
  '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a href="x">&b;<![CDATA[ ]]></a><?php echo 1; ?>',
  // Data.
  '=SUM(A1:A9),-1.5e-10,+49 (0) 30 / 123-456,"a ""quoted"" cell",#N/A,2026-02-29T24:00:00Z,€1.234,56',
  'eyJhbGciOiJub25lIn0.e30. AAAA//8= 0x7fffffff 0b1010 1e400 NaN -0 ∞ ½ x² H₂O α≤β∴γ',
  'Dear all,\n\n  please find the minutes attached.\n\t* item 1\n\t* item 2: "yes; no / maybe"\n\n-- \nRegards',
]

/** Returns a seeded generator of choices. */
function choices(seed: string) {
  let drawn = 0
  return (below: number): number =>
    createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE() % below
}

interface Input {
  readonly query: string
  readonly type: string
  readonly body: string
}

/** Creates an input of about `bytes` bytes. */
function inputOf(index: number, bytes: number): Input {
  const below = choices(`input ${index}`)
  const text = () => SEEDS[below(SEEDS.length)] ?? ''
  const long = () => {
    const part = `${text()} / ${text()}\n`
    return part.repeat(Math.ceil(Math.min(bytes, LONG_CHARS) / part.length))
  }
  const pairs = new URLSearchParams([
    ['q', text().replace(/\s+/g, ' ')],
    [`filter[${below(9)}]`, 'a,b;c'],
    ['return', 'https://app.example/a?b=c%20d&e=%2Ff'],
  ])
  const query = `?${pairs}`
  switch (index % 4) {
    case 0: {
      const part = `No. ${index}\n${text()}\n${text()}\n`
      return { query, type: 'text/plain', body: part.repeat(Math.ceil(bytes / part.length)) }
    }
    case 1: {
      const form = { name: text(), comment: long(), 'address.street': text(), 'tags[]': text() }
      return {
        query,
        type: 'application/x-www-form-urlencoded',
        body: `${new URLSearchParams(form)}`,
      }
    }
    case 2: {
      const form = {
        title: text(),
        [text().replace(/\s+/g, ' ')]: true,
        text: long(),
        size: below(1e9),
      }
      return { query, type: 'application/json', body: JSON.stringify(form, null, below(3)) }
    }
    default: {
      const rows = Array.from({ length: 1 + below(50) }, () => [
        below(1e6) / 7,
        text(),
        { note: text(), done: null },
      ])
      return {
        query: '',
        type: 'application/vnd.api+json',
        body: JSON.stringify({ data: rows, long: long() }),
      }
    }
  }
}

test(`of ${INPUTS} harmless inputs, 10 MB in total, none is refused and each arrives unchanged`, async () => {
  const { send, reached, reasons } = inspected({})
  const kinds = new Set<string>()
  let total = 0
  for (let index = 0; index < INPUTS; index++) {
    // Most are small. One in five is long.
    const input = inputOf(index, index % 20 < 4 ? 24_000 : 800)
    const { status } = await send(input.query, new TextEncoder().encode(input.body), input.type)
    expect([status, reasons, input.body.slice(0, 200)]).toEqual([200, [], input.body.slice(0, 200)])
    expect(Buffer.from(reached.pop()?.body ?? []).equals(Buffer.from(input.body))).toBe(true)
    kinds.add(input.body)
    total += Buffer.byteLength(input.body) + input.query.length
  }
  expect(kinds.size).toBeGreaterThan(INPUTS * 0.95)
  expect(total).toBeGreaterThanOrEqual(TOTAL_BYTES)
})
