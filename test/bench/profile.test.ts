import { expect, test } from 'vitest'
import { ownerTimes, pathOfUrl, pathsInBundle } from '../../bench/profile/owners.ts'
import type { CpuProfile } from '../../bench/stack/inspector.ts'

const node = (id: number, functionName: string, url: string, lineNumber = 0) => ({
  id,
  callFrame: { functionName, url, lineNumber, columnNumber: 0 },
  children: id === 1 ? [2, 3, 4, 5, 6, 7, 8] : [],
})

test('time belongs to the package, folder or platform function that runs, without idle time', () => {
  const profile: CpuProfile = {
    nodes: [
      node(1, '(root)', ''),
      node(2, 'dispatch', 'file:///a/node_modules/undici/lib/pool.js'),
      node(3, 'admit', 'file:///a/src/access/admission/admit.ts'),
      node(4, 'onread', 'node:net'),
      node(5, 'writev', ''),
      node(6, '(garbage collector)', ''),
      node(7, '(program)', ''),
      node(8, '(idle)', ''),
    ],
    samples: [2, 3, 4, 8, 5, 6, 7, 2],
    timeDeltas: [0, 400, 250, 200, 900, 100, 45, 5],
  }
  const { owners, busyMicros } = ownerTimes(profile, 10, pathOfUrl)
  expect(owners.map(({ owner, micros }) => [owner, micros])).toEqual([
    ['undici', 40],
    ['src/access/admission', 25],
    ['Node', 20],
    ['platform: writev', 10],
    ['garbage collection', 4.5],
    ['native code', 0.5],
  ])
  expect(busyMicros).toBe(100)
})

test('a line of a bundle belongs to its module', () => {
  const bundle = [
    'var __defProp = Object.defineProperty;',
    '// If the importer is in node compatibility mode',
    '// ../../node_modules/@upstash/redis/cloudflare.mjs',
    'var Redis = class {};',
    '// ../../src/middleware/admit.ts',
    'function admit() {}',
    '// src/plain comment',
  ].join('\n')
  const pathOf = pathsInBundle(bundle)
  const paths = [0, 3, 5, 6, 1_000].map((lineNumber) => pathOf({ url: 'x.js', lineNumber }))
  expect(paths).toEqual([
    'bundle',
    '../../node_modules/@upstash/redis/cloudflare.mjs',
    ...['../../src/middleware/admit.ts', '../../src/middleware/admit.ts', 'bundle'],
  ])
})
