import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from '../cli/command-line.ts'
import { makeNodeProject, type NodeProject } from './project.ts'

let project: NodeProject
beforeAll(async () => {
  project = await makeNodeProject()
})
afterAll(() => project.close())

const WRONG = {
  PORT: '70000',
  HOST: 'a b',
  TRUSTED_PROXIES: '10.0.0.0/8, ten, 10.0.0.0/33',
  ORIGIN_URL: 'x',
  REDIS_URL: 'redis://127.0.0.1:1',
}

test.each([{ options: ['--check'] }, { options: [] }])(
  'serve $options lists the mistakes of the server with all others, and does not listen',
  async ({ options }) => {
    const { code, stdout, stderr } = await runCli(['serve', ...options], {
      cwd: project.folder,
      env: WRONG,
    })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      `portcullis: The environment is not valid:
  - PORT: must be a number from 0 to 65535
  - HOST: must be an address such as 127.0.0.1, or the name of a host
  - TRUSTED_PROXIES: "ten" is not a network
  - TRUSTED_PROXIES: "10.0.0.0/33" is not a network
  - ORIGIN_URL: must be an http or https URL
  - PUBLIC_URL: is missing
`,
    )
  },
)

test('serve reads the file of --values, and variables of the process take precedence', async () => {
  const file = join(project.folder, 'some.env')
  await writeFile(file, 'PORT=70000\nHOST="a b"\nPUBLIC_URL=https://gateway.test\n')
  const { code, stderr } = await runCli(['serve', '--check', '--values', file], {
    cwd: project.folder,
    env: { PORT: '0', PUBLIC_URL: '', REDIS_URL: 'redis://127.0.0.1:1' },
  })
  expect(code).toBe(2)
  expect(stderr).toBe(
    `portcullis: The environment is not valid:
  - HOST: must be an address such as 127.0.0.1, or the name of a host
  - ORIGIN_URL: is missing; set it, or bind a service as ORIGIN
`,
  )
})

test('a file of --values that does not exist is a mistake of usage', async () => {
  const { code, stderr } = await runCli(['serve', '--values', 'none.env'], { cwd: project.folder })
  expect(code).toBe(2)
  expect(stderr).toContain('--values: none.env does not exist')
})
