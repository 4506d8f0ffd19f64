/**
 * What a WebSocket must carry or refuse, by the chapters of Autobahn's suite: frames of a client, which
 * an echo server answers.
 */
import { closing, frame, OPCODE } from './web-socket-client.ts'

export interface WebSocketCase {
  readonly name: string
  readonly frames: readonly Buffer[]
}

const { binary, close, continuation, ping, pong } = OPCODE
const text = (payload: string | Buffer) => frame(payload)
const part = (payload: string | Buffer, opcode: number, isFinal = false) =>
  frame(payload, { opcode, isFinal })
/** The client closes after its frames, unless they end the connection. */
const bye = frame(closing(1000), { opcode: close })
const open = (name: string, ...frames: Buffer[]): WebSocketCase => ({
  name,
  frames: [...frames, bye],
})
const hex = (digits: string) => Buffer.from(digits, 'hex')

const SIZES = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 1_048_576]
const INVALID_UTF8 = {
  'a surrogate': 'cebae1bdb9cf83cebcceb5eda080656469746564',
  'an overlong form': 'c0af',
  'a code point above the last one': 'f4908080',
  'a byte that begins nothing': '80',
  'the beginning of a character': 'ce',
  'a byte that no text has': 'fe',
}
const SENT_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]
const REFUSED_CODES = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535]

/**
 * Cases that workerd decides before it hands over a message, without a gateway as well: it answers only
 * the latest of several pings, replaces bytes that are not UTF-8, and accepts control frames, close
 * codes and frames without a mask that RFC 6455 does not allow.
 */
export const OF_PLATFORM =
  /^(?:2 ten pings|2 a ping of 126|6 not UTF-8|7 .*may not be sent|7 a close of one byte|7 a reason of 124|7 a reason that|9 a frame that)/

export const CASES: readonly WebSocketCase[] = [
  ...SIZES.map((size) => open(`1 text of ${size} bytes`, text('*'.repeat(size)))),
  ...SIZES.map((size) =>
    open(`1 binary of ${size} bytes`, frame(Buffer.alloc(size, 0xfe), { opcode: binary })),
  ),
  open('2 an empty ping', frame('', { opcode: ping })),
  open('2 a ping with bytes', frame(hex('00ff fe fd'.replaceAll(' ', '')), { opcode: ping })),
  open('2 a ping of 125 bytes', frame(Buffer.alloc(125, 0xfe), { opcode: ping })),
  open('2 ten pings', ...Array.from({ length: 10 }, (_, n) => frame(`${n}`, { opcode: ping }))),
  open('2 a pong without a ping', frame('x', { opcode: pong }), text('after')),
  open('2 a ping of 126 bytes', frame(Buffer.alloc(126), { opcode: ping })),
  open('2 a ping in parts', part('a', ping), part('b', continuation, true)),
  ...[1, 2, 3, 4, 5, 6, 7].map((reserved) =>
    open(`3 reserved bits ${reserved} of a text`, frame('x', { reserved })),
  ),
  open('3 reserved bits of a ping', frame('x', { opcode: ping, reserved: 2 })),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) =>
    open(`4 reserved opcode ${opcode}`, frame('x', { opcode })),
  ),
  open('5 a text in two parts', part('frag', 1), part('ment', continuation, true)),
  open(
    '5 a text in a hundred parts',
    part('a', 1),
    ...Array.from({ length: 98 }, () => part('b', continuation)),
    part('c', continuation, true),
  ),
  open('5 empty parts', part('', 1), part('', continuation), part('', continuation, true)),
  open(
    '5 a ping between the parts of a text',
    part('a', 1),
    frame('p', { opcode: ping }),
    part('b', continuation, true),
  ),
  open('5 a part that continues nothing', part('a', continuation, true)),
  open('5 a last part that continues nothing', part('a', continuation), text('x')),
  open('5 a text between the parts of a text', part('a', 1), text('b')),
  open('5 a close between the parts of a text', part('a', 1)),
  open('6 text of several scripts', text('κόσμε ελληνικά 日本 🎉\u0000')),
  open(
    '6 a character in two parts',
    part(hex('cebae1bd'), 1),
    part(hex('b9cf83'), continuation, true),
  ),
  open(
    '6 the first and the last of each length',
    text(
      Buffer.concat(
        ['00', '7f', 'c280', 'dfbf', 'e0a080', 'efbfbf', 'f0908080', 'f48fbfbf'].map(hex),
      ),
    ),
  ),
  open('6 a byte order mark', text(hex('efbbbf61'))),
  ...Object.entries(INVALID_UTF8).map(([name, digits]) =>
    open(`6 not UTF-8: ${name}`, text(hex(digits))),
  ),
  open(
    '6 not UTF-8, in parts',
    part(hex('cebae1bdb9'), 1),
    part(hex('eda080'), continuation, true),
  ),
  { name: '7 a close without a code', frames: [frame('', { opcode: close })] },
  ...SENT_CODES.map((code) => ({
    name: `7 close ${code}`,
    frames: [text('last'), frame(closing(code, 'why'), { opcode: close })],
  })),
  ...REFUSED_CODES.map((code) => ({
    name: `7 close ${code}, which may not be sent`,
    frames: [frame(closing(code), { opcode: close })],
  })),
  { name: '7 a close of one byte', frames: [frame('x', { opcode: close })] },
  {
    name: '7 a reason of 123 bytes',
    frames: [frame(closing(1000, 'r'.repeat(123)), { opcode: close })],
  },
  {
    name: '7 a reason of 124 bytes',
    frames: [frame(closing(1000, 'r'.repeat(124)), { opcode: close })],
  },
  {
    name: '7 a reason that is not UTF-8',
    frames: [frame(closing(1000, hex('eda080')), { opcode: close })],
  },
  { name: '7 a text after a close', frames: [bye, text('too late')] },
  { name: '7 a ping after a close', frames: [bye, frame('x', { opcode: ping })] },
  open('9 a frame that is not masked', frame('x', { isMasked: false })),
  open('9 many messages', ...Array.from({ length: 200 }, (_, n) => text(`message ${n}`))),
]
