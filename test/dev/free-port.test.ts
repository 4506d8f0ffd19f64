import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

/** Of 9,000. Without marks, two processes would have about 28 in common. */
const COUNT = 500
const SCRIPT = `
  const { freePort } = await import('./dev/free-port.ts')
  const ports = []
  for (let count = 0; count < ${COUNT}; count++) ports.push(await freePort())
  console.log(JSON.stringify(ports))
  // Keeps the ports until its parent has the output of both.
  process.stdin.resume()`

test('two processes that look for ports at the same time get different ports', async () => {
  const processes = [1, 2].map(() => {
    const running = promisify(execFile)(process.execPath, ['--input-type=module', '-e', SCRIPT], {
      cwd: ROOT,
    })
    const said = new Promise((resolve) => running.child.stdout?.once('data', resolve))
    return { running, said }
  })
  await Promise.all(processes.map(({ said }) => said))
  for (const { running } of processes) running.child.stdin?.end()
  const outputs = await Promise.all(processes.map(({ running }) => running))
  const ports = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as number[])
  expect(ports).toHaveLength(2 * COUNT)
  expect(new Set(ports).size).toBe(2 * COUNT)
})
