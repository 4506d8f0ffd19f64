/** A policy with every group of fields. docs/configuration.md shows it in parts. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { cors } from 'portcullis/cors'
import { mcp } from 'portcullis/mcp'
import { openapi } from 'portcullis/openapi'
import { operators } from 'portcullis/operators'
import { otlp } from 'portcullis/otlp'
import { plans, quotas } from 'portcullis/plans'
import { relations } from 'portcullis/relations'
import { signatures } from 'portcullis/signatures'
import { upstash } from 'portcullis/upstash'
import * as z from 'zod'
import model from '../../portcullis.model.json' with { type: 'json' }

const app = cors({ origins: ['https://app.example.com'] })

const portal = cors({
  origins: ['https://portal.example.com'],
  credentials: true,
  allowHeaders: ['Idempotency-Key'],
  exposeHeaders: ['ETag'],
  maxAgeSeconds: 600,
  privateNetwork: true,
  limits: ['anonymous'],
})

export default definePolicy({
  roles: {
    reader: ['orders:read'],
    writer: ['orders:read', 'orders:write'],
    operator: ['portcullis:*'],
  },
  revocation: { maxStalenessMs: 1_000 },
  maxConcurrentRequests: 500,
  maxOpenResponses: 5_000,
  problemBaseUrl: 'https://docs.example.com/errors',
  clientStallSeconds: 30,
  maxHeaderBytes: 49_152,
  maxTokenBytes: 32_768,
  tokenCacheBytes: 33_554_432,
  features: [operators({ endedApiKeyDays: 400 }), authorizationServer(), openapi(), otlp()],
  identityHeaders: { 'X-Auth-Email': 'email', 'X-Auth-Groups': ['groups'] },
  // The origin reads the tenant from these: no client may send them.
  stripHeaders: ['X-Tenant-Id', 'X-Acme-*'],
  // The origin checks this one itself.
  keepHeaders: ['X-User-Id'],
  limits: {
    standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    anonymous: { limit: 60, windowSeconds: 60, by: 'address', onUnavailable: 'allow' },
    reports: { limit: 30, windowSeconds: 60, by: 'tenant', onUnavailable: 'deny', cost: 5 },
    hot: {
      limit: 60_000,
      windowSeconds: 60,
      by: 'client',
      onUnavailable: 'deny',
      lease: { max: 500, ttlMs: 1_000 },
    },
    downloads: {
      limit: 10,
      windowSeconds: 3_600,
      by: ({ principal, address }) => principal?.session ?? address,
      onUnavailable: 'allow',
      mode: 'observe',
    },
    approximate: {
      limit: 1_000,
      windowSeconds: 60,
      by: 'client',
      onUnavailable: 'deny',
      engine: upstash(),
    },
    plan: plans({
      plans: {
        free: '100/min',
        pro: { rate: ['50/s', '5000/min'], perDay: 100_000, perMonth: 1_000_000, concurrency: 20 },
      },
      default: 'free',
      planBy: ['key', 'client', 'claim'],
    }),
    fair: quotas({ perDay: 10_000, concurrency: 10, by: 'tenant', slotSeconds: 60 }),
  },
  routes: [
    { method: 'GET', path: '/public/ping', anonymous: true, limits: ['anonymous'] },
    {
      method: 'GET',
      path: '/orders/:id',
      permission: 'orders:read',
      relation: { object: 'order:{params.id}', relation: 'viewer' },
      limits: ['standard'],
      input: { params: z.strictObject({ id: z.uuid() }) },
      originTimeoutMs: 5_000,
      coalesce: true,
    },
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'], cors: app },
    { method: 'GET', path: '/portal', permission: 'orders:read', cors: portal },
    {
      method: 'POST',
      path: '/orders',
      permission: 'orders:write',
      limits: ['standard', 'hot'],
      input: {
        query: z.strictObject({ dryRun: z.enum(['true', 'false']).optional() }),
        headers: z.looseObject({ 'idempotency-key': z.uuid() }),
        body: z.strictObject({ item: z.string().min(1).max(100), quantity: z.int().min(1) }),
      },
    },
    {
      method: 'POST',
      path: '/transfers',
      permission: 'orders:write',
      authentication: { acr: ['phr', 'mfa'], maxAgeSeconds: 300 },
    },
    {
      method: 'POST',
      path: '/orders/:id/approval',
      permission: 'orders:write',
      relation: {
        object: 'order:{params.id}',
        relation: 'can_approve',
        contextualTuples: [
          { object: 'order:{params.id}', relation: 'project', subject: 'project:{tenant}' },
        ],
        mode: 'observe',
      },
      maxBodyBytes: 0,
    },
    {
      method: 'GET',
      path: '/orders/:id/files/*',
      permission: { name: 'orders:export', mode: 'observe' },
      limits: ['downloads'],
      forwardCookies: true,
      webSocketOrigins: ['https://app.example.com'],
      recheckGraceSeconds: 30,
      finishDownloads: true,
    },
    {
      method: 'GET',
      path: '/files/report',
      permission: 'files:audit',
      originSpelling: 'distinct-extensions',
    },
    { method: 'GET', path: '/files/:name', permission: 'files:read' },
    {
      method: 'POST',
      path: '/payments',
      permission: 'orders:write',
      limits: ['approximate', 'plan', 'fair'],
      maxBodyBytes: 4_096,
      forwardAuthorization: true,
      dpop: true,
    },
    {
      method: 'POST',
      path: '/reports',
      permission: 'orders:read',
      limits: ['reports'],
      inspect: {
        maxDepth: 8,
        maxNames: 100,
        maxStringChars: 10_000,
        repeatable: ['tag'],
        mode: 'enforce',
        signatures: signatures({
          mode: 'enforce',
          threshold: 6,
          categories: ['sql_injection', 'path_traversal'],
        }),
      },
    },
    {
      method: 'POST',
      path: '/mcp',
      permission: 'orders:read',
      inspect: {
        jsonRpc: {
          methods: { initialize: true, 'tools/list': true, 'tools/call': true },
          maxBatch: 10,
          tools: {
            search: {
              permission: 'orders:read',
              arguments: z.strictObject({ text: z.string().max(200) }),
            },
          },
        },
      },
    },
    ...mcp({
      path: '/assistant',
      permission: 'orders:read',
      limits: ['standard'],
      tools: {
        list_orders: true,
        read_order: {
          arguments: z.strictObject({ id: z.uuid() }),
          relation: { object: 'order:{arguments.id}', relation: 'viewer' },
          definition: 'sha256-0WmIrGwTKYRxdKkV5rTCSVJq6QBBOIJOTz0m8v9aUa0',
        },
        create_order: { permission: 'orders:write', arguments: 'any', limits: ['reports'] },
      },
      resources: { 'https://shop.example.com/help/*': true },
      prompts: { summary: { arguments: z.strictObject({ month: z.string() }) } },
      methods: { 'tasks/get': true, 'logging/setLevel': { permission: 'orders:write' } },
      scopes: ['orders:read', 'offline_access'],
      versions: ['2025-11-25', '2026-07-28'],
      definitions: 'observe',
      maxMessageBytes: 262_144,
      recheckSeconds: 10,
    }),
  ],
  tokens: {
    accessTokenSeconds: 600,
    sessionSeconds: 2_592_000,
    exchangeLimits: {
      client: { limit: 5_000, windowSeconds: 60 },
      subjectToken: { limit: 10, windowSeconds: 600 },
    },
    refreshGraceSeconds: 5,
    dpopNonceRequired: true,
    sources: [{ header: 'Authorization' }, { header: 'X-API-Key' }],
  },
  abuse: {
    authenticationFailures: { limit: 50, windowSeconds: 60, mode: 'enforce' },
    bans: {
      violations: 10,
      windowSeconds: 600,
      seconds: 1_800,
      maxSeconds: 43_200,
      refuses: 'everything',
      mode: 'observe',
    },
    exempt: ['127.0.0.0/8', '::1/128', '192.0.2.0/24'],
  },
  relations: relations({
    model,
    subject: 'user:{subject}',
    issuers: ['https://idp.example.com'],
    maxStalenessMs: 500,
    cacheEntries: 5_000,
    authority: 'redis',
  }),
})
