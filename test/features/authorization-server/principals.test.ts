import { expect, test } from 'vitest'
import { principalOfGrant } from '../../../src/access/tokens/access-grant.ts'
import {
  type Client,
  principalOfClient,
} from '../../../src/features/authorization-server/client.ts'

const GATEWAY = 'https://gateway.test'
const grant = {
  subject: 'alice',
  client: 'web',
  tenant: 'acme',
  session: 's1',
  roles: ['reader'],
  scopes: ['a:r'],
  audiences: ['https://api.test'],
  confirmation: 'thumbprint',
}

test('the principal of a token is the subject of its grant, with the id and the times of the token', () => {
  const issued = {
    token: 'x',
    tokenId: 'token-1',
    tokenIdHash: 'hash',
    issuedAtSeconds: 100,
    expiresAtSeconds: 400,
  }
  expect(principalOfGrant(grant, GATEWAY, issued)).toEqual({
    issuer: GATEWAY,
    tokenIssuer: GATEWAY,
    subject: 'alice',
    client: 'web',
    tenant: 'acme',
    session: 's1',
    roles: ['reader'],
    scopes: ['a:r'],
    tokenId: 'token-1',
    tokenIdHash: 'hash',
    confirmation: 'thumbprint',
    issuedAtSeconds: 100,
    expiresAtSeconds: 400,
  })
})

test('a subject of another issuer keeps that issuer, and its times are 0 before the token exists', () => {
  const foreign = { ...grant, subjectIssuer: 'https://idp.test/' }
  expect(principalOfGrant(foreign, GATEWAY)).toMatchObject({
    issuer: 'https://idp.test/',
    tokenIssuer: GATEWAY,
    tokenId: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: 0,
  })
})

test('the principal of a client is the client itself, with its roles and without a scope', () => {
  const client: Client = {
    id: 'batch',
    name: 'Nightly batch',
    grants: ['client_credentials'],
    scopes: ['a:r'],
    roles: ['writer'],
    audiences: ['https://api.test'],
    tenant: 'acme',
    secrets: [],
    jwks: undefined,
    tokenFormat: 'jwt',
    tokenAlgorithm: undefined,
    accessTokenSeconds: undefined,
    dpopBound: false,
    disabled: false,
    createdAtSeconds: 1,
    configured: false,
  }
  expect(principalOfClient(client, GATEWAY)).toEqual({
    issuer: GATEWAY,
    tokenIssuer: GATEWAY,
    subject: 'batch',
    client: 'batch',
    tenant: 'acme',
    session: undefined,
    roles: ['writer'],
    scopes: [],
    tokenId: undefined,
    tokenIdHash: undefined,
    confirmation: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: 0,
  })
})
