/**
 * A policy with orders that require a relation, from a user's own tuples, without cached decisions.
 */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import { relations } from 'portcullis/relations'
import model from '../../portcullis.model.json' with { type: 'json' }

export default definePolicy({
  features: [operators(), authorizationServer()],
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {
    standard: { limit: 1_000_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    leased: {
      limit: 1_000_000,
      windowSeconds: 60,
      by: 'subject',
      onUnavailable: 'deny',
      lease: { max: 1_000, ttlMs: 10_000 },
    },
  },
  routes: [
    {
      method: 'GET',
      path: '/orders/:id',
      permission: 'orders:read',
      limits: ['standard'],
      relation: { object: 'order:{params.id}', relation: 'viewer' },
    },
    {
      method: 'GET',
      path: '/leased/:id',
      permission: 'orders:read',
      limits: ['leased'],
      relation: { object: 'order:{params.id}', relation: 'viewer' },
    },
    {
      method: 'GET',
      path: '/watched/:id',
      permission: 'orders:read',
      relation: { object: 'order:{params.id}', relation: 'viewer', mode: 'observe' },
    },
  ],
  revocation: { maxStalenessMs: 10_000 },
  relations: relations({ model, issuers: ['https://issuer.test'] }),
  abuse: { bans: false, authenticationFailures: false },
})
