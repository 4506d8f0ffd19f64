/** The command line where its output cannot be written, or its folder is gone. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CLI } from './command-line.ts'

const shell = (script: string, ...args: readonly string[]) => {
  const command = ['-c', script, 'sh', process.execPath, CLI, ...args]
  const { status, stderr, stdout } = spawnSync('/bin/sh', command, { encoding: 'utf8' })
  return { status, stderr, stdout }
}

test('a full disk is one sentence and exit code 1', () => {
  const { status, stderr } = shell('"$1" "$2" --help > /dev/full')
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'portcullis: the output could not be written (ENOSPC)\n',
  })
})

test('a reader that leaves early is no failure', () => {
  const run = '{ "$1" "$2" --help; echo "$?" >&2; } | true'
  expect(shell(run)).toEqual({ status: 0, stderr: '0\n', stdout: '' })
})

test('an error message that cannot be written does not change the exit code', () => {
  expect(shell('"$1" "$2" nothing 2> /dev/full').status).toBe(2)
})

test('a folder that was removed is one sentence and exit code 1', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-gone-'))
  const { status, stderr } = shell('cd "$3" && rmdir "$3" && "$1" "$2" policy check', folder)
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'portcullis: the current folder no longer exists; change to another one\n',
  })
})
