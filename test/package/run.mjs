/**
 * Runs in a consumer's project, with any supported Node: imports every subpath, tests the policy, and
 * sends requests to the guarded app. Arguments: the modules of the app and of the policy.
 */
import { strictEqual } from 'node:assert'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { serve } from '@hono/node-server'
import { createIssuer, policyTest } from 'portcullis/testing'

const [appFile, policyFile] = process.argv.slice(2)
const manifestOf = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'))
// The server of `portcullis/node` needs Hono 4.6.7 or later.
const [major, minor, patch] = manifestOf('hono').version.split('.').map(Number)
const servesOnNode = major > 4 || minor > 6 || patch >= 7
const { exports } = manifestOf('portcullis')
for (const [subpath, target] of Object.entries(exports))
  if (target.default?.endsWith('.js') && (servesOnNode || subpath !== './node'))
    await import(`portcullis${subpath.slice(1)}`)

const { default: policy } = await import(pathToFileURL(policyFile))
await policyTest(policy, [
  { request: 'GET /notes', expect: 'missing_token' },
  { request: 'GET /notes', as: { roles: ['reader'] }, expect: 'allowed' },
  { request: 'POST /notes', as: { roles: ['writer'] }, body: { text: '' }, expect: 422 },
])

let issuer
const provider = await listening((request) => issuer.fetch(request))
issuer = await createIssuer({ issuer: provider.url, audience: 'https://notes.example.com' })
const env = { ...process.env, ISSUER: provider.url }
const { default: app } = await import(pathToFileURL(appFile))
const api = await listening((request, connection) => app.fetch(request, { ...env, ...connection }))

async function statusOf(method, path, { roles, body } = {}) {
  const headers = { 'content-type': 'application/json' }
  if (roles !== undefined) headers.authorization = `Bearer ${await issuer.token({ roles })}`
  const init = { method, headers, body: body && JSON.stringify(body) }
  return (await fetch(api.url + path, init)).status
}
strictEqual(await statusOf('GET', '/about'), 200)
strictEqual(await statusOf('GET', '/notes'), 401)
strictEqual(await statusOf('GET', '/notes', { roles: ['reader'] }), 200)
strictEqual(await statusOf('POST', '/notes', { roles: ['reader'], body: { text: 'x' } }), 403)
strictEqual(await statusOf('POST', '/notes', { roles: ['writer'], body: { text: '' } }), 422)
strictEqual(await statusOf('POST', '/notes', { roles: ['writer'], body: { text: 'x' } }), 201)
console.log(`all requests were decided as expected in Node ${process.version}`)
process.exit(0)

function listening(fetch) {
  return new Promise((resolve) => {
    serve({ fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
      resolve({ url: `http://127.0.0.1:${port}` }),
    )
  })
}
