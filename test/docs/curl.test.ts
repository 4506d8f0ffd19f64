import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startHttpServer } from '../harness/http-server.ts'

test('the curl replacement sends the given request and prints status, headers and body', async () => {
  const server = await startHttpServer(async (request, response) => {
    if (request.url === '/ok') return void response.end('{"ok":true}')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, url, headers } = request
    response.writeHead(418, { 'X-Answer': 'a: b' })
    const sent = [headers['x-a'], headers.authorization, headers['content-type']]
    response.end(JSON.stringify([method, url, ...sent, Buffer.concat(chunks).toString()]))
  })
  const curl = async (...args: string[]) =>
    (await promisify(execFile)('node', [join(import.meta.dirname, 'curl.mjs'), ...args])).stdout
  const url = `${server.url}/a%2fb?c=d`
  const answers = [
    await curl('-i', url, '-H', 'X-A: 1: 2'),
    await curl('-i', '-X', 'PUT', '-d', '{"a":1}', url),
    await curl('-s', '-u', 'a:b', '-d', 'x=1', '-d', 'y=2', url),
  ]
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-curl-'))
  const file = join(folder, 'answer.json')
  expect(await curl('-s', '-o', file, `${server.url}/ok`)).toBe('')
  await server.close()
  expect(answers[0]).toMatch(
    /^HTTP\/1\.1 418 [\s\S]*\nx-answer: a: b\n(.+\n)*\n\["GET","\/a%2fb\?c=d","1: 2",null,null,""\]/,
  )
  const form = 'application/x-www-form-urlencoded'
  const [put, post] = answers.slice(1).map((answer) => JSON.parse(answer.split('\n').at(-2) ?? ''))
  expect(put).toEqual(['PUT', '/a%2fb?c=d', null, null, form, '{"a":1}'])
  expect(post).toEqual(['POST', '/a%2fb?c=d', null, 'Basic YTpi', form, 'x=1&y=2'])
  expect(await readFile(file, 'utf8')).toBe('{"ok":true}\n')
  await rm(folder, { recursive: true })
})
