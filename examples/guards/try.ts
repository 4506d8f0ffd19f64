/** The app beside an issuer for trying it: needs neither an identity provider nor a Redis. Prints a token of a reader. */
import express from 'express'
import { portcullis } from 'portcullis/express'
import { createIssuer, memoryStore } from 'portcullis/testing'

const audience = 'https://notes.example.com'
const issuer = await createIssuer({ issuer: 'https://idp.example.com', audience })
const guard = portcullis({
  issuers: [issuer.entry],
  redis: memoryStore({ allowOutsideTests: true }),
  roles: { reader: ['notes:read'] },
  limits: { standard: '5/min' },
})

const app = express()
app.use(guard)
app.get('/notes', guard.require('notes:read'), (req, res) =>
  res.json({ notesOf: req.caller?.subject }),
)
app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', async () => {
  const token = await issuer.token({ sub: 'alice', roles: ['reader'], expiresInSeconds: 3_600 })
  console.log(token)
})
