/** Prints a fresh private key for SIGNING_KEYS, ES256, as one line of JSON. Keep it secret. */
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'

const { privateKey } = await generateKeyPair('ES256', { extractable: true })
const jwk = await exportJWK(privateKey)
const kid = await calculateJwkThumbprint(jwk)
console.log(JSON.stringify({ ...jwk, kid, alg: 'ES256', use: 'sig' }))
