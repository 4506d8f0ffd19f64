/**
 * What is allowed: roles, limits, and the table of routes. Edit this file to put the gateway before
 * your own API; a route that is not in the table does not exist.
 */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { introspection } from 'portcullis/introspection'
import { openapi } from 'portcullis/openapi'
import { operators } from 'portcullis/operators'
import { otlp } from 'portcullis/otlp'
import { relations } from 'portcullis/relations'
import { newOrder, orderListQuery, orderParams, reportPeriod } from './examples/orders/schemas.ts'
import model from './portcullis.model.json' with { type: 'json' }

export default definePolicy({
  roles: {
    reader: ['orders:read'],
    writer: ['orders:read', 'orders:write'],
    admin: ['orders:*', 'reports:*'],
    operator: ['portcullis:*'],
  },
  limits: {
    standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    expensive: { limit: 30, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    anonymous: { limit: 60, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
  },
  routes: [
    { method: 'GET', path: '/public/ping', anonymous: true, limits: ['anonymous'] },
    {
      method: 'GET',
      path: '/orders',
      permission: 'orders:read',
      limits: ['standard'],
      input: { query: orderListQuery },
    },
    {
      method: 'GET',
      path: '/orders/:id',
      permission: 'orders:read',
      limits: ['standard'],
      input: { params: orderParams },
    },
    {
      method: 'POST',
      path: '/orders',
      permission: 'orders:write',
      limits: ['standard'],
      input: { body: newOrder },
      maxBodyBytes: 65_536,
    },
    {
      method: 'DELETE',
      path: '/orders/:id',
      permission: 'orders:delete',
      limits: ['standard'],
      input: { params: orderParams },
      maxBodyBytes: 0,
    },
    {
      method: 'GET',
      path: '/orders/:id/invoice',
      permission: 'orders:read',
      relation: { object: 'order:{params.id}', relation: 'viewer' },
      limits: ['standard'],
      input: { params: orderParams },
    },
    {
      method: 'POST',
      path: '/orders/:id/approval',
      permission: 'orders:write',
      relation: { object: 'order:{params.id}', relation: 'can_approve' },
      limits: ['standard'],
      input: { params: orderParams },
      maxBodyBytes: 0,
    },
    {
      method: 'POST',
      path: '/reports',
      permission: 'reports:create',
      limits: ['standard', 'expensive'],
      input: { body: reportPeriod },
      maxBodyBytes: 65_536,
    },
  ],
  // Sessions that begin with a login at your identity provider live 30 days, however short its tokens.
  tokens: { sessionSeconds: 2_592_000 },
  // The calls of operators and of the command line, the tokens of OAuth clients, opaque tokens of
  // ISSUERS, the description of these calls at /-/docs, and traces for OTLP_ENDPOINT.
  features: [operators(), authorizationServer(), introspection(), openapi(), otlp()],
  relations: relations({
    model,
    // Issuers whose subjects the tuples are about, besides the gateway itself: your identity provider.
    issuers: [],
  }),
})
