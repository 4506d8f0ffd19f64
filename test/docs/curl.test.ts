import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startHttpServer } from '../harness/http-server.ts'

test("curl's stand-in sends what it is told, and tells status, headers and body", async () => {
  const server = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, url, headers } = request
    response.writeHead(418, { 'X-Answer': 'a: b' })
    response.end(JSON.stringify([method, url, headers['x-a'], Buffer.concat(chunks).toString()]))
  })
  const curl = async (...args: string[]) =>
    (await promisify(execFile)('node', [join(import.meta.dirname, 'curl.mjs'), ...args])).stdout
  const url = `${server.url}/a%2fb?c=d`
  const answers = [
    await curl('-i', url, '-H', 'X-A: 1: 2'),
    await curl('-i', '-X', 'PUT', '-d', '{"a":1}', url),
    await curl('-d', 'x', url),
  ]
  await server.close()
  expect(answers[0]).toMatch(
    /^HTTP\/1\.1 418 [\s\S]*\nx-answer: a: b\n(.+\n)*\n\["GET","\/a%2fb\?c=d","1: 2",""\]/,
  )
  expect(answers[1]).toContain(String.raw`["PUT","/a%2fb?c=d",null,"{\"a\":1}"]`)
  expect(answers[2]).toBe(`["POST","/a%2fb?c=d",null,"x"]\n`)
})
