import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { complaintOfFailure, startWrangler } from '../../../dev/start/wrangler.ts'

const MISTAKE = 'Uncaught Error: routes[0].path: must be a path pattern'

/** What esbuild prints if its parent ends during a build. */
const GOROUTINE = `
goroutine 59 [sync.WaitGroup.Wait]:
sync.runtime_WaitForGroup(0x2a2443853890?, 0xc0?)
\truntime/wait.go:114 +0x2e
sync.(*WaitGroup).Wait(0x2a244430e300)
\tsync/group.go:206 +0x85
main.runService(0x1)
\tgithub.com/x/esbuild/cmd/esbuild/service.go:160 +0x637
main.(*serviceType).convertPlugins.func2.2()
\tgithub.com/x/esbuild/cmd/esbuild/service.go:968 +0x117
github.com/x/esbuild/internal/helpers.(*ThreadSafeWaitGroup).Wait(...)
\tgithub.com/x/esbuild/internal/helpers/wait.go:36
github.com/x/esbuild/internal/bundler.ScanBundle(_, {_, _, _, _, _, _}, {_, _}, 0x2a2442fec240, ...)
\tgithub.com/x/esbuild/internal/bundler/bundler.go:1489 +0xccc
github.com/x/esbuild/pkg/api.rebuildImpl({0x2a2442fec240, {0x2a244340e7b0, 0x1, 0x1}, {0x0, ...}, ...}, ...)
\tgithub.com/x/esbuild/pkg/api/api_impl.go:1512 +0x338
github.com/x/esbuild/pkg/api.(*pluginImpl).onStart-fm.(*pluginImpl).onStart.func1()
\tgithub.com/x/esbuild/pkg/api/api_impl.go:1888 +0x36
created by github.com/x/esbuild/pkg/api.(*watcher).start in goroutine 28
\tgithub.com/x/esbuild/pkg/api/watcher.go:98 +0x65
`
const DUMP = `fatal error: all goroutines are asleep - deadlock!\n${GOROUTINE.repeat(20)}`

/** Lines of wrangler that resemble lines of the dump. */
const OTHERS = ['  policy.ts:12:3 in createPolicy()', 'panic: out of memory', 'main.ts (1 KiB)']

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-wrangler-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('the goroutines that esbuild prints do not replace the error of wrangler', async () => {
  const program = join(folder, 'wrangler.mjs')
  const error = `✘ [ERROR] service core:user:gateway: ${MISTAKE}\n✘ [ERROR] The Workers runtime failed to start.\n`
  const output = JSON.stringify(`${error}${DUMP}${OTHERS.join('\n')}\n`)
  await writeFile(program, `process.stderr.write(${output})\nprocess.exitCode = 1\n`)
  const workers = startWrangler([], folder, { root: folder, wrangler: program })
  const followed: string[] = []
  workers.follow((line) => followed.push(line))
  expect(await workers.ended).toBe(1)
  expect(complaintOfFailure(workers.lines())).toContain(MISTAKE)
  expect(followed.slice(2)).toEqual(OTHERS)
  expect(workers.lines()).toEqual(followed)
})
