import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FrameBoundary } from '../../../src/runtimes/node/frame-boundary.ts'

function frame(length: number, isMasked: boolean): Buffer {
  const short = length < 126 ? length : length < 65_536 ? 126 : 127
  const size = Buffer.alloc(short < 126 ? 0 : short === 126 ? 2 : 8)
  if (short === 126) size.writeUInt16BE(length)
  if (short === 127) size.writeBigUInt64BE(BigInt(length))
  const second = Buffer.from([0x82, short | (isMasked ? 0x80 : 0)])
  return Buffer.concat([
    second,
    size,
    Buffer.alloc(isMasked ? 4 : 0, 0xff),
    Buffer.alloc(length, 0xff),
  ])
}

test('frames end where they end, however the bytes are cut', () => {
  const lengths = fc.oneof(fc.nat(3), fc.constantFrom(125, 126, 127, 65_535, 65_536, 70_000))
  const frames = fc.array(fc.tuple(lengths, fc.boolean()), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(frames, fc.array(fc.nat(200), { maxLength: 40 }), (described, cuts) => {
      const parts = described.map(([length, isMasked]) => frame(length, isMasked))
      const whole = Buffer.concat(parts)
      const ends = new Set<number>([0])
      let end = 0
      for (const part of parts) {
        end += part.length
        ends.add(end)
      }
      const boundary = new FrameBoundary()
      let at = 0
      while (at < whole.length) {
        const size = (cuts.shift() ?? whole.length) + 1
        const chunk = whole.subarray(at, at + size)
        const complete = boundary.read(chunk)
        const inside = [...ends].filter((each) => each > at && each <= at + chunk.length)
        expect(complete).toBe(inside.length === 0 ? 0 : Math.max(...inside) - at)
        at += chunk.length
        expect(boundary.isBetweenFrames).toBe(ends.has(at))
      }
    }),
  )
})
