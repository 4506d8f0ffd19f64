import { describe, expect, test } from 'vitest'
import { signatures } from '../../../src/features/signatures/index.ts'
import { multipartInspection } from '../../../src/features/signatures/multipart.ts'
import { DEFAULT_INSPECTION } from '../../../src/inspection/definition.ts'
import { usualOrLong } from '../../harness/long.ts'
import { inspected } from '../../inspection/app.ts'

const TYPE = 'multipart/form-data; boundary=b0'
const ATTACK = "x' union select login, password from users -- "
const enforced = { signatures: signatures({ mode: 'enforce' }) }

/** Joins parts, each its header lines and its content, to a body with the boundary `b0`. */
const bodyWith = (...parts: readonly (readonly [headers: string, content: string])[]) =>
  `${parts.map(([headers, content]) => `--b0\r\n${headers}\r\n\r\n${content}\r\n`).join('')}--b0--\r\n`
const field = (name: string, value: string) =>
  [`Content-Disposition: form-data; name="${name}"`, value] as const

/** Returns the bytes and the type of a form as `fetch` sends it. */
async function sentBy(form: FormData) {
  const response = new Response(form)
  return { body: await response.bytes(), type: response.headers.get('Content-Type') ?? '' }
}

describe('an attack in a multipart body never reaches the handler [S62, S63]:', () => {
  test.each([
    ['value', bodyWith(field('a', 'b'), field('c', ATTACK))],
    ['value, encoded once more', bodyWith(field('a', encodeURIComponent(ATTACK)))],
    ['value behind padding', bodyWith(field('a', 'x'.repeat(90_000) + ATTACK))],
    ['value after a large file', bodyWith(file('x'.repeat(900_000)), field('a', ATTACK))],
    ['name', bodyWith(field('../../../../../etc/passwd', ''))],
    ['name of a file', bodyWith([`${disposition('a', '../../../../etc/passwd')}`, ''])],
    [
      'encoded name of a file',
      bodyWith([
        `Content-Disposition: form-data; name=a; filename*=UTF-8''%3Csvg%20onload%3Dalert%281%29%3E`,
        '',
      ]),
    ],
    ['media type', bodyWith([`${disposition('a', 'b')}\r\nContent-Type: ${ATTACK}`, ''])],
    ['other header', bodyWith([`${disposition('a', 'b')}\r\nX-Note: ${ATTACK}`, ''])],
    [
      'value of JSON',
      bodyWith([
        `Content-Disposition: form-data; name="a"\r\nContent-Type: application/json`,
        JSON.stringify({ b: [ATTACK] }),
      ]),
    ],
    ['field with an empty name of a file', bodyWith([disposition('a', ''), ATTACK])],
  ])('in a %s', async (_, body) => {
    const { send, reached, reasons } = inspected(enforced)
    expect([(await send('', body, TYPE)).status, reasons]).toEqual([
      403,
      [expect.stringMatching(/^[a-z_]+\.[a-z_]+$/)],
    ])
    expect(reached).toEqual([])
  })

  test('in several parts whose scores are summed', async () => {
    const { send } = inspected(enforced)
    const body = bodyWith(field('a', '(document.cookie)'), field('b', '<iframe>'))
    expect((await send('', body, TYPE)).status).toBe(403)
  })
})

function disposition(name: string, filename: string): string {
  return `Content-Disposition: form-data; name="${name}"; filename="${filename}"`
}
function file(content: string) {
  return [
    `${disposition('file', 'a.bin')}\r\nContent-Type: application/octet-stream`,
    content,
  ] as const
}

describe('a harmless multipart body reaches the handler byte for byte', () => {
  test('as fetch sends it, with files', async () => {
    const form = new FormData()
    form.append('title', 'Straße "Ä" 白鯨 🐋\r\nsecond line')
    form.append('empty', '')
    form.append(
      'photo',
      new File([crypto.getRandomValues(new Uint8Array(60_000))], '写真 1.png', {
        type: 'image/png',
      }),
    )
    // The content of a file is the origin's: an article about attacks is no attack.
    form.append('article', new File([ATTACK], 'article.md', { type: 'text/markdown' }))
    const { body, type } = await sentBy(form)
    const { send, reached } = inspected(enforced)
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 1_000)
          controller.enqueue(body.slice(at, at + 1_000))
        controller.close()
      },
    })
    expect((await send('', stream, type)).status).toBe(200)
    expect(Buffer.compare(reached[0]?.body ?? new Uint8Array(), body)).toBe(0)
  })

  test.each([
    ['without a line after the end', bodyWith(field('a', 'b')).trimEnd()],
    ['without parts', '--b0--\r\n'],
    [
      'with an empty file',
      bodyWith([`${disposition('a', '')}\r\nContent-Type: application/octet-stream`, '']),
    ],
    [
      'with a number as JSON',
      bodyWith([
        `content-disposition: form-data; name=a\r\ncontent-type: application/json; charset=utf-8`,
        '1',
      ]),
    ],
    [
      'with a binary transfer encoding',
      bodyWith([
        `Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: 8bit`,
        'b',
      ]),
    ],
    ['with its charset', bodyWith(field('_charset_', 'UTF-8'))],
  ])('%s', async (_, body) => {
    const { send, reached, reasons } = inspected(enforced)
    expect([(await send('', body, TYPE)).status, reasons]).toEqual([200, []])
    expect(new TextDecoder().decode(reached[0]?.body)).toBe(body)
  })

  test('with a quoted boundary and the charset', async () => {
    const { send } = inspected(enforced)
    const body = bodyWith(field('a', 'b')).replaceAll('b0', 'b 0:1')
    const type = 'Multipart/Form-Data; charset=UTF-8; Boundary="b 0:1"'
    expect((await send('', body, type)).status).toBe(200)
  })
})

describe('a multipart body that parsers could read differently is 400 and never reaches the handler [S62]:', () => {
  const valid = bodyWith(field('a', 'b'))
  const of = (headers: string) => bodyWith([headers, 'b'])
  test.each([
    ['no boundary', valid, 'multipart/form-data', 'body_multipart'],
    ['two boundaries', valid, `${TYPE}; boundary=b1`, 'body_multipart'],
    [
      'a boundary in continuations',
      valid,
      'multipart/form-data; boundary*0=b; boundary*1=0',
      'body_multipart',
    ],
    [
      'a boundary that is too long',
      valid,
      `multipart/form-data; boundary=${'b'.repeat(71)}`,
      'body_multipart',
    ],
    ['another boundary', valid, 'multipart/form-data; boundary=b1', 'body_multipart'],
    ['an empty body of some bytes', '\r\n', TYPE, 'body_multipart'],
    ['text before the first part', `x\r\n${valid}`, TYPE, 'body_multipart'],
    ['text after the last part', `${valid}x`, TYPE, 'body_multipart'],
    ['a part after the last part', valid + valid, TYPE, 'body_multipart'],
    ['no end', valid.replace('--b0--\r\n', ''), TYPE, 'body_multipart'],
    ['half an end', valid.replace('--b0--\r\n', '--b0-'), TYPE, 'body_multipart'],
    ['a boundary in a value', bodyWith(field('a', 'x--b0')), TYPE, 'body_multipart'],
    ['a boundary that continues', bodyWith(field('a', 'x\r\n--b01\r\nx')), TYPE, 'body_multipart'],
    ['a boundary after LF', bodyWith(field('a', 'x\n--b0')), TYPE, 'body_multipart'],
    ['space after a boundary', valid.replace('--b0\r\n', '--b0 \r\n'), TYPE, 'body_multipart'],
    ['lines that end with LF', valid.replaceAll('\r\n', '\n'), TYPE, 'body_multipart'],
    ['no headers', '--b0\r\n\r\nb\r\n--b0--\r\n', TYPE, 'body_multipart'],
    ['no disposition', of('Content-Type: text/plain'), TYPE, 'body_multipart'],
    [
      'two dispositions',
      of('Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"'),
      TYPE,
      'body_multipart',
    ],
    [
      'two types',
      of(
        'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain\r\nContent-Type: application/json',
      ),
      TYPE,
      'body_multipart',
    ],
    [
      'another disposition',
      of('Content-Disposition: attachment; name="a"'),
      TYPE,
      'body_multipart',
    ],
    ['no name', of('Content-Disposition: form-data'), TYPE, 'body_multipart'],
    ['two names', of('Content-Disposition: form-data; name="a"; name="b"'), TYPE, 'body_multipart'],
    [
      'two names of a file',
      of(`Content-Disposition: form-data; name="a"; filename="a"; filename*=UTF-8''b`),
      TYPE,
      'body_multipart',
    ],
    [
      'an extended name',
      of(`Content-Disposition: form-data; name*=UTF-8''a`),
      TYPE,
      'body_multipart',
    ],
    [
      'an escaped quote',
      of('Content-Disposition: form-data; name="a\\"; filename=\\"b"'),
      TYPE,
      'body_multipart',
    ],
    ['an open quote', of('Content-Disposition: form-data; name="a'), TYPE, 'body_multipart'],
    [
      'another parameter',
      of('Content-Disposition: form-data; name="a"; size=1'),
      TYPE,
      'body_multipart',
    ],
    ['a folded header', of('Content-Disposition: form-data;\r\n name="a"'), TYPE, 'body_multipart'],
    [
      'a header without a colon',
      of('Content-Disposition: form-data; name="a"\r\nnothing'),
      TYPE,
      'body_multipart',
    ],
    [
      'a space before the colon',
      of('Content-Disposition : form-data; name="a"'),
      TYPE,
      'body_multipart',
    ],
    [
      'a CR in a header',
      of('Content-Disposition: form-data; name="a\rb\n"'),
      TYPE,
      'body_multipart',
    ],
    [
      'too large headers',
      of(`X: ${'x'.repeat(20_000)}\r\nContent-Disposition: form-data; name="a"`),
      TYPE,
      'body_multipart',
    ],
    [
      'a transfer encoding',
      of('Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64'),
      TYPE,
      'body_multipart',
    ],
    [
      'a content encoding',
      of('Content-Disposition: form-data; name="a"\r\nContent-Encoding: gzip'),
      TYPE,
      'body_multipart',
    ],
    [
      'broken percent-encoding',
      of(`Content-Disposition: form-data; name=a; filename*=UTF-8''%ff`),
      TYPE,
      'body_multipart',
    ],
    ['another charset', bodyWith(field('_charset_', 'utf-7')), TYPE, 'body_multipart'],
    ['a name of a prototype', bodyWith(field('a[__proto__][b]', 'c')), TYPE, 'body_prototype_name'],
    ['a repeated name', bodyWith(field('a', 'b'), field('a', 'c')), TYPE, 'body_repeated'],
    ['a control character', bodyWith(field('a', 'b\0')), TYPE, 'body_control'],
    [
      'a control character in JSON',
      bodyWith([
        `Content-Disposition: form-data; name="a"\r\nContent-Type: application/json`,
        '"\\u0000"',
      ]),
      TYPE,
      'body_control',
    ],
    [
      'JSON with two equal names',
      bodyWith([
        `Content-Disposition: form-data; name="a"\r\nContent-Type: application/json`,
        '{"b":1,"b":2}',
      ]),
      TYPE,
      'body_duplicate_name',
    ],
    ['a value that is too long', bodyWith(field('a', 'x'.repeat(100_001))), TYPE, 'body_length'],
    [
      'too many parts',
      bodyWith(...Array.from({ length: 1_001 }, (_, index) => field(`a${index}`, ''))),
      TYPE,
      'body_names',
    ],
  ])('%s', async (_, body, type, reason) => {
    const { send, reached, reasons } = inspected(enforced)
    expect([(await send('', body, type)).status, reasons]).toEqual([400, [reason]])
    expect(reached).toEqual([])
  })

  test.each([
    ['in a value', 'Content-Disposition: form-data; name="a"', 0xff],
    ['in a header', 'Content-Disposition: form-data; name="\xff"', 0x62],
  ])('bytes that are not UTF-8 %s', async (_, headers, byte) => {
    const { send, reasons } = inspected(enforced)
    const body = Buffer.from(bodyWith([headers, String.fromCharCode(byte)]), 'latin1')
    expect([(await send('', body, TYPE)).status, reasons]).toEqual([400, ['body_encoding']])
  })

  test.each([
    ['with an attack after the next delimiter', 'X: y\r\n--b0\r\n'],
    ['with an empty line of the delimiter only', 'X: y\r\n\r\n--b0\r\n'],
    ['with a name alone', 'X\r\n--b0\r\n'],
    ['after one header', '--b0\r\n'],
  ])('a part that does not end its headers, %s', async (_, unfinished) => {
    const { send, reached, reasons } = inspected({ ...enforced, repeatable: ['tag'] })
    const body = [
      `--b0\r\nContent-Disposition: form-data; name="tag"\r\n\r\nt\r\n`,
      `--b0\r\n${disposition('f', 'x.bin')}\r\n${unfinished}`,
      `Content-Disposition: form-data; name="q"\r\n\r\n${ATTACK}\r\n--b0--\r\n`,
    ].join('')
    expect([(await send('', body, TYPE)).status, reasons]).toEqual([400, ['body_multipart']])
    expect(reached).toEqual([])
  })

  test('a name of the query again', async () => {
    const { send, reasons } = inspected(enforced)
    expect((await send('?a=1', valid, TYPE)).status).toBe(400)
    expect(reasons).toEqual(['body_repeated'])
    const { send: sendRepeatable } = inspected({ ...enforced, repeatable: ['a'] })
    expect((await sendRepeatable('?a=1', valid, TYPE)).status).toBe(200)
  })
})

test('a part or a body that cannot be inspected is 415 and never reaches the handler', async () => {
  const { send, reached } = inspected(enforced)
  const valid = bodyWith(field('a', 'b'))
  for (const type of [
    'application/octet-stream',
    'multipart/mixed; boundary=b1',
    'text/plain; charset=utf-7',
    'nothing',
  ])
    expect(
      (
        await send(
          '',
          bodyWith([`Content-Disposition: form-data; name="a"\r\nContent-Type: ${type}`, 'b']),
          TYPE,
        )
      ).status,
    ).toBe(415)
  expect((await send('', valid, TYPE, 'gzip')).status).toBe(415)
  expect((await send('', valid, `${TYPE}; charset=utf-16`)).status).toBe(415)
  expect((await send('', valid, TYPE.replace('form-data', 'mixed'))).status).toBe(415)
  expect((await send('', valid, 'multipart/form-data; boundary=')).status).toBe(415)
  expect(reached).toEqual([])
})

test('without signatures, a multipart body is 415: only signatures bundle its parser', async () => {
  const { send, reached } = inspected({})
  expect((await send('', bodyWith(field('a', 'b')), TYPE)).status).toBe(415)
  expect(reached).toEqual([])
})

test('the parser of Node reads the same names and values as the inspection [S62]', async () => {
  const base = Buffer.from(
    bodyWith(field('alpha', 'one'), [disposition('beta', 'b.txt'), 'two'], field('gamma', '')),
    'latin1',
  )
  const pieces = [
    '\r\n',
    '\n',
    '\r',
    '--b0',
    '--',
    '"',
    ';',
    '\\',
    ' ',
    ':',
    '\0',
    'name="x"',
    '\r\n\r\n',
    '\xff',
    '=',
    '\t',
  ]
  const below = drawsFrom(7)
  let compared = 0
  for (let round = 0; round < 4_000; round++) {
    const at = below(base.length)
    const piece = Buffer.from(pieces[below(pieces.length)] ?? '', 'latin1')
    const body = Buffer.concat([base.subarray(0, at), piece, base.subarray(at + below(4))])
    const inspectedTexts = textsIn(body)
    const read = inspectedTexts && (await readByNode(body))
    // A body that either of them refuses has no second reading.
    if (inspectedTexts === undefined || read === undefined) continue
    compared += 1
    expect(inspectedTexts, JSON.stringify(body.toString('latin1'))).toEqual(read)
  }
  expect(compared).toBeGreaterThan(300)
})

test('Node reads each body of random lines that the inspection accepts, and nothing else in it [S62]', async () => {
  const lines = [
    '--b0',
    'Content-Disposition: form-data; name="tag"',
    'Content-Disposition: form-data; name="f"; filename="x.bin"',
    'X: y',
    'X',
    '',
    '',
    'value',
    '--b0',
  ]
  const below = drawsFrom(11)
  const last = bodyWith(field('tag', ATTACK))
  let accepted = 0
  for (let round = 0; round < usualOrLong(8_000, 20_000); round++) {
    const drawn = Array.from({ length: below(9) }, () => `${lines[below(lines.length)]}\r\n`)
    const body = Buffer.from(
      bodyWith(field('tag', 't')).replace('--b0--\r\n', drawn.join('') + last),
    )
    const texts = textsIn(body)
    if (texts === undefined) continue
    accepted += 1
    const read = await readByNode(body)
    // The inspection searches the value of the header as well.
    const ofForm = texts.filter((text) => text !== 'y')
    expect(ofForm, JSON.stringify(body.toString())).toEqual(read)
  }
  expect(accepted).toBeGreaterThan(300)
})

/** Returns repeatable draws of numbers from 0 to `count` - 1. */
function drawsFrom(seed: number): (count: number) => number {
  let draw = seed
  return function below(count) {
    draw = (draw * 48_271) % 2_147_483_647
    return draw % count
  }
}

/** Returns the texts that the inspection searches, without empty ones; undefined for a refused body. */
function textsIn(body: Uint8Array): string[] | undefined {
  const texts: string[] = []
  const scan = { add: (text: string) => void texts.push(text), verdict: 0 }
  try {
    const limits = { ...DEFAULT_INSPECTION, repeatable: ['tag', 'f'] }
    multipartInspection(TYPE)?.(body, limits, { names: new Set(), count: 0, scan })
  } catch {
    return undefined
  }
  return texts.filter((text) => text !== '')
}

async function readByNode(body: Uint8Array<ArrayBuffer>): Promise<string[] | undefined> {
  try {
    const form = await new Response(body, { headers: { 'Content-Type': TYPE } }).formData()
    return [...form]
      .flatMap(([name, value]) => [name, typeof value === 'string' ? value : value.name])
      .filter((text) => text !== '')
  } catch {
    return undefined
  }
}
