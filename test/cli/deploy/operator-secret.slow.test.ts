import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CloudflareApi, startCloudflareApi } from '../../harness/cloudflare-api.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createProject, GATEWAY_ONLY, type Project } from './project.ts'

const DEPLOYING = { timeout: 180_000 }

let api: CloudflareApi
let project: Project
let gateway: TestServer
let asked: Promise<void>

beforeEach(async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  asked = promise
  gateway = await startHttpServer((_, response) => {
    resolve()
    response.writeHead(503).end()
  })
  api = await startCloudflareApi()
  project = await createProject(api, gateway.url, GATEWAY_ONLY)
})

afterEach(async () => {
  await project?.close()
  await api?.close()
  await gateway?.close()
})

/** An origin that is no Worker. */
const ORIGIN = { ORIGIN_URL: 'https://origin.example.com' }

/** Returns the hashes of the secrets of the clients that the gateway has. */
function storedHashes(): readonly string[] {
  const bindings = api.worker('shop')?.versions.at(-1)?.bindings ?? []
  const clients = bindings.find(({ name }) => name === 'CLIENTS')
  const entries = JSON.parse(String(clients?.text ?? '[]')) as { readonly secretSha256: string }[]
  return entries.map(({ secretSha256 }) => secretSha256)
}

function hashOfPrinted(stdout: string): string {
  const { clientSecret } = JSON.parse(stdout) as { readonly clientSecret: string }
  return createHash('sha256').update(clientSecret).digest('base64url')
}

const CREATING = ['--yes', '--json', '--create-operator']

describe(
  'the secret of the first operator is printed if Cloudflare has its hash',
  DEPLOYING,
  () => {
    test('when a step after the upload of the gateway fails', async () => {
      api.failOnce(/^\w+ \/workers\/scripts\/shop\/subdomain /)
      const { code, stdout, stderr } = await project.deploy(CREATING, ORIGIN)
      expect(code, stderr).toBe(1)
      expect(storedHashes()).toEqual([hashOfPrinted(stdout)])
      expect(stderr).not.toContain('pcs_')
    })

    test('when a signal ends the wait for the gateway, and no file with secrets remains meanwhile', async () => {
      const command = project.start([...CREATING, '--wait', '1h'], ORIGIN)
      await Promise.race([asked, command.ended])
      expect(await project.leftovers()).toEqual([])
      command.kill('SIGINT')
      const { code, stdout, stderr } = await command.ended
      expect(code, stderr).toBe(3)
      expect(stderr).toContain('not_ready')
      expect(storedHashes()).toEqual([hashOfPrinted(stdout)])
    })

    test('and not when the upload of the gateway fails', async () => {
      api.failOnce(/^PUT \/workers\/scripts\/shop /)
      const { code, stdout } = await project.deploy(CREATING, ORIGIN)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    })
  },
)

test('a response that is not one of Cloudflare ends the command before anything is created', async () => {
  const proxy = await startHttpServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>Sign in</p>')
  })
  const { code, stderr } = await project.deploy(['--yes'], {
    ...ORIGIN,
    CLOUDFLARE_API_BASE_URL: proxy.url,
  })
  await proxy.close()
  expect(code).toBe(3)
  expect(stderr).toContain('the response is not one of the Cloudflare API')
})
