/** An identity provider for development, at http://localhost:9000. Prints a token of a reader. */
import { serve } from '@hono/node-server'
import { createIssuer } from 'portcullis/testing'

const issuer = await createIssuer({
  issuer: 'http://localhost:9000',
  audience: 'https://api.example.com',
})
serve({ fetch: issuer.fetch, port: 9000 })
console.log(await issuer.token({ sub: 'alice', roles: ['reader'], expiresInSeconds: 3_600 }))
