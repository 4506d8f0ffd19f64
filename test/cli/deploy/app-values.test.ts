/** The values of an app: its file, and the environment of the command. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readAppValues } from '../../../cli/deploy/app.ts'

test('only usual names are taken from the environment of the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-values-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'values')
  writeFileSync(file, 'USER=app\nDATABASE_URL=postgres://app\nPUBLIC_URL=https://file.test\n')
  const values = readAppValues({ folder, environment: 'production' }, file, {
    ...{ USER: 'anne', DATABASE_URL: 'postgres://of-anne', HOME: '/home/anne' },
    ...{ PUBLIC_URL: 'https://shell.test', UPSTASH_REDIS_REST_TOKEN: 'token' },
  })
  expect(values).toEqual({
    USER: 'app',
    DATABASE_URL: 'postgres://app',
    PUBLIC_URL: 'https://shell.test',
    UPSTASH_REDIS_REST_TOKEN: 'token',
  })
})
