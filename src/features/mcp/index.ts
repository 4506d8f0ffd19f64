/** MCP servers behind the gateway: `import { mcp } from 'portcullis/mcp'`. */

import type { RelationDemand } from '../../access/relations/definition.ts'
import { Misconfigured } from '../../errors.ts'
import type { Contribution, Feature, GuardParts } from '../../gateway/feature.ts'
import { createApp } from '../../http/router.ts'
import type { InspectDefinition } from '../../inspection/definition.ts'
import { DEFAULT_INSPECTION } from '../../inspection/definition.ts'
import { admit } from '../../middleware/admit.ts'
import type { CorsFeature } from '../../policy/cors.ts'
import type { RouteDefinition } from '../../policy/definition.ts'
import { limitsNamed } from '../../policy/limits.ts'
import type { McpFeature, McpReferences } from '../../policy/mcp.ts'
import { unknownLimit } from '../../policy/mistakes.ts'
import type { PolicyRoute } from '../../policy/policy.ts'
import {
  type Mistake,
  type MistakeCode,
  mistakeAt,
  mistakeWithin,
  withPath,
} from '../../problems/mistake.ts'
import { anyOrigin } from '../../routes/any-origin.ts'
import { ownFirst, publicDocument, resourceMetadata } from '../../routes/well-known.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { compileCorsRules } from '../cors/rules.ts'
import { createMcpGuard } from './access.ts'
import { createBinding } from './binding.ts'
import { DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_VERSIONS, type McpDefinition } from './definition.ts'
import { jsonRpcErrors } from './json-rpc-error.ts'
import { mistakeInPattern } from './resource-uri.ts'
import { mcpResponse } from './response.ts'
import { mcpSchema } from './schema.ts'
import { mcpAdmit, mcpInspection, mcpTransport, readArgument } from './stages.ts'

export type {
  McpAccess,
  McpDefinition,
  McpPromptAccess,
  McpToolAccess,
} from './definition.ts'
export { accessOf } from './definition.ts'
export type { McpFeature }

/** The endpoint of an MCP server, and what callers may use of it. */
export interface McpOptions<LimitName extends string = string, OriginName extends string = string>
  extends McpDefinition,
    Omit<
      RouteDefinition<LimitName, OriginName>,
      'method' | 'input' | 'inspect' | 'coalesce' | 'webSocketOrigins' | 'mcp'
    > {
  /** Path of the endpoint, without parameters: `/mcp`. */
  readonly path: string
  /** Bounds and attack signatures of messages. */
  readonly inspect?: Omit<InspectDefinition, 'jsonRpc' | 'mode'>
}

/** Headers that pages must be able to send and to read (MCP, streamable HTTP). */
const SENT = ['MCP-Protocol-Version', 'Mcp-Session-Id', 'Mcp-Method', 'Mcp-Name', 'Last-Event-ID']
const READ = ['Mcp-Session-Id']

/**
 * Returns the routes of an MCP server with streamable HTTP, to spread into `routes`: POST for
 * messages, GET for the stream of the server, DELETE for the end of a session. Throws `Misconfigured`
 * for a mistake in the options. Needs `SIGNING_KEYS`.
 *
 * @example
 * ```ts
 * routes: [
 *   ...mcp({
 *     path: '/mcp',
 *     permission: 'mcp:use',
 *     limits: ['standard'],
 *     tools: {
 *       list_shelves: true,
 *       remove_book: { permission: 'books:delete', arguments: z.strictObject({ isbn }) },
 *     },
 *   }),
 * ]
 * ```
 */
export function mcp<
  const LimitName extends string = never,
  const OriginName extends string = never,
>(options: McpOptions<LimitName, OriginName>): RouteDefinition<LimitName, OriginName>[] {
  const { tools, resources, prompts, methods, scopes, versions, definitions, ...others } = options
  const { maxMessageBytes, inspect, maxBodyBytes, cors, ...route } = others
  const definition: McpDefinition = {
    ...{ tools, resources, prompts, methods, scopes, versions, definitions },
    ...{ maxMessageBytes },
  } as McpDefinition
  parseConfiguration('The policy', mcpSchema, { path: route.path, ...definition }, ['mcp'])
  const feature: McpServer = {
    feature: 'mcp',
    by: MCP,
    definition: { ...definition, inspect },
    limits: Object.values(tools ?? {}).flatMap((tool) =>
      tool === true ? [] : (tool.limits ?? []),
    ),
    permissions: permissionsOf(definition),
    mistakesIn: (row, references) => mistakesIn(definition, row, references),
  }
  const common = { ...route, mcp: feature, ...(cors !== undefined && { cors: forClients(cors) }) }
  return [
    {
      ...common,
      method: 'POST',
      ...(inspect !== undefined && { inspect }),
      ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    },
    { ...common, method: 'GET' },
    { ...common, method: 'DELETE', maxBodyBytes: 0 },
  ]
}

interface Server extends McpDefinition {
  readonly inspect: McpOptions['inspect']
}

interface McpServer extends McpFeature {
  readonly definition: Server
}

const isServer = (feature: McpFeature): feature is McpServer => 'definition' in feature

/** One for all servers of a policy. */
const MCP: Feature = { name: 'mcp', guard }

/** Adds the headers of the transport. */
function forClients(cors: CorsFeature): CorsFeature {
  const { definition, ...feature } = cors
  const { allowHeaders = [], exposeHeaders = [] } = definition
  return {
    ...feature,
    definition: {
      ...definition,
      allowHeaders: [...allowHeaders, ...SENT],
      exposeHeaders: [...exposeHeaders, ...READ],
    },
  }
}

function* mistakesIn(
  definition: McpDefinition,
  { anonymous, relation }: { readonly anonymous?: true; readonly relation?: RelationDemand },
  { names, relations }: McpReferences,
): Generator<Mistake> {
  for (const pattern of Object.keys(definition.resources ?? {})) {
    const mistake = mistakeInPattern(pattern)
    if (mistake !== undefined)
      yield {
        code: 'invalid_format',
        path: ['mcp', 'resources', pattern],
        message: `resources.${pattern}: ${mistake}`,
      }
  }
  for (const [name, tool] of Object.entries(definition.tools ?? {})) {
    if (tool === true) continue
    const at = `tools.${name}`
    const path = ['mcp', 'tools', name]
    const inRelation = (code: MistakeCode, what: string): Mistake => ({
      code,
      path: [...path, 'relation'],
      message: `${at}.relation: ${what}`,
    })
    if (name === '*' && (tool.relation ?? tool.limits ?? tool.definition) !== undefined)
      yield {
        code: 'conflict',
        path,
        message: `${at}: relation, limits and definition need a tool with a name`,
      }
    for (const limit of tool.limits ?? [])
      if (!names.includes(limit))
        yield mistakeWithin([...path, 'limits'], `${at}.limits`, unknownLimit([], limit, names))
    if (tool.relation === undefined || relations === null) continue
    if (relation !== undefined) yield inRelation('conflict', 'the route has a relation already')
    if (anonymous) yield inRelation('conflict', 'anonymous callers have no relations')
    if (tool.arguments === undefined)
      yield inRelation('missing', 'requires a schema of the arguments')
    if (relations === undefined) {
      yield inRelation('missing_feature', 'requires the field relations of the policy')
      continue
    }
    const [demand, params] = ofArguments(tool.relation)
    for (const mistake of relations.mistakesIn(demand, params))
      yield mistakeWithin([...path, 'relation'], `${at}.relation`, mistake)
  }
  if (anonymous && permissionsOf(definition).length > 0)
    yield withPath(
      mistakeAt('conflict', ['mcp'], 'requires a permission, and anonymous callers have none'),
    )
}

const ARGUMENT = /\{arguments\.(\w+)\}/g

/** Returns the demand with `{params.id}` for `{arguments.id}`, and the names of these arguments. */
function ofArguments(demand: RelationDemand): readonly [RelationDemand, readonly string[]] {
  const params: string[] = []
  const filled = (template: string) =>
    template.replace(ARGUMENT, (_, name: string) => {
      params.push(name)
      return `{params.${name}}`
    })
  const { contextualTuples } = demand
  const translated: RelationDemand = {
    ...demand,
    object: filled(demand.object),
    ...(contextualTuples && {
      contextualTuples: contextualTuples.map(({ object, subject, ...tuple }) => ({
        ...tuple,
        object: filled(object),
        subject: filled(subject),
      })),
    }),
  }
  return [translated, params]
}

function permissionsOf({ tools, resources, prompts, methods }: McpDefinition): readonly string[] {
  const entries = [tools, resources, prompts, methods].flatMap((all) => Object.values(all ?? {}))
  return entries.flatMap((entry) => (entry === true ? [] : (entry.permission ?? [])))
}

function guard({ core, policy }: GuardParts): Contribution {
  const { relations: checker, authorizer, sharedSecret } = core
  const { routes, limits: limitOf } = policy
  const ruleOf = policy.relations?.ruleOf
  if (sharedSecret === undefined)
    throw new Misconfigured('The environment', [
      mistakeAt(
        'missing',
        ['SIGNING_KEYS'],
        'is missing; mcp() binds the sessions of a server to their callers with it',
      ),
    ])
  const binding = createBinding(sharedSecret)
  const metadata = createApp()

  /** What the three routes of a server share. */
  function shared(route: PolicyRoute, server: Server) {
    const { tools = {} } = server
    const permissions = permissionsOf(server)
    authorizer.declare(permissions)
    const own = route.permission === undefined ? [] : [route.permission]
    const scopes = server.scopes ?? own
    const { publicUrl } = core
    const url = publicUrl + route.path
    const document = `/oauth-protected-resource${route.path}`
    const supported = scopes.length === 0 ? [] : [...new Set([...scopes, ...permissions])]
    const described = { ...core, issuers: listIssuers(policy, core) }
    metadata.all(document, anyOrigin('GET'))
    const terms = { scopes: supported, requiresProofs: route.dpop }
    metadata.get(
      document,
      publicDocument(() => resourceMetadata(described, url, terms)),
    )
    const relations = new Map(
      Object.entries(tools).flatMap(([name, tool]) => {
        if (tool === true || tool.relation === undefined) return []
        if (ruleOf === undefined || checker === undefined)
          throw new Error(`tools.${name}.relation: the gateway has no relations`)
        const rule = ruleOf(ofArguments(tool.relation)[0])
        return [[name, { rule, checker, paramOf: readArgument }] as const]
      }),
    )
    const limits = new Map(
      Object.entries(tools).flatMap(([name, tool]) => {
        const listed = tool === true ? [] : (tool.limits ?? [])
        const found = listed.flatMap((limit) => limitsNamed(limitOf, limit))
        return found.length > 0 ? [[name, found] as const] : []
      }),
    )
    const pages = pagesOf(route.cors)
    const ownPage = new URL(publicUrl).origin
    const versions = new Set<string>(server.versions ?? DEFAULT_VERSIONS)
    // A client that is refused for its version chooses one of these.
    let negotiable: readonly string[] = [...versions]
    return {
      relations,
      limits,
      versions,
      negotiable: () => negotiable,
      discovered(found: readonly string[]) {
        if (found.length > 0) negotiable = found
      },
      common: {
        guard: createMcpGuard(server),
        binding,
        authorizer,
        changed: new Set<string>(),
        server: route.path,
      },
      url,
      transport: mcpTransport({
        allowsOrigin: (origin) => origin === ownPage || pages(origin),
        versions,
        metadata: {
          general: `${publicUrl}/.well-known/oauth-protected-resource`,
          own: `${publicUrl}/.well-known${document}`,
        },
        scopes,
        supported: new Set(supported),
        isPermitted: authorizer,
      }),
    }
  }
  const servers = routes.flatMap((route) => {
    if (route.mcp === undefined || route.method !== 'POST' || !isServer(route.mcp)) return []
    const { definition: server } = route.mcp
    return [{ feature: route.mcp, route, server, ...shared(route, server) }]
  })
  const known = new Map<McpFeature, (typeof servers)[number]>(
    servers.map((server) => [server.feature, server]),
  )

  return {
    apps: () => [{ at: '/.well-known', app: metadata }],
    around: [
      jsonRpcErrors({
        routes,
        negotiable: new Map(servers.map(({ route, negotiable }) => [route, negotiable])),
      }),
    ],
    stagesOf(route) {
      const found = route.mcp && known.get(route.mcp)
      if (found === undefined) return undefined
      const { server, relations, limits, versions, discovered, common, url, transport } = found
      const named = new Set([...relations.keys(), ...limits.keys()])
      return {
        arrival: [transport],
        admit: (options) =>
          mcpAdmit({
            limits: { ...DEFAULT_INSPECTION, ...server.inspect },
            versions,
            guard: common.guard,
            otherwise: admit(options),
            ofTools: new Map(
              [...named].map((name) => [
                name,
                admit({
                  ...options,
                  limits: [...new Set([...(options.limits ?? []), ...(limits.get(name) ?? [])])],
                  relation: relations.get(name) ?? options.relation,
                }),
              ]),
            ),
          }),
        inspect: (next) => mcpInspection({ ...common, resource: url, relations, next }),
        response: [
          mcpResponse({
            ...common,
            definitions: server.definitions ?? 'enforce',
            maxMessageBytes: server.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES,
            versions,
            discovered,
          }),
        ],
      }
    },
  }
}

/**
 * Returns the issuers in the order in which clients should use them: most use the first. The gateway
 * itself can log users in only with `authorizationCode()`.
 */
function listIssuers(
  { features }: GuardParts['policy'],
  { tokenIssuers: issuers, publicUrl }: GuardParts['core'],
): readonly string[] {
  if (features.some(({ name }) => name === 'authorizationCode')) return ownFirst(issuers, publicUrl)
  const others = issuers.filter((issuer) => issuer !== publicUrl)
  return others.length > 0 ? others : issuers
}

/** Returns a check for the origins that may read responses. */
function pagesOf(cors: CorsFeature | undefined): (origin: string) => boolean {
  if (cors === undefined) return () => false
  const { allows } = compileCorsRules(cors.definition)
  return (origin) => allows(origin)
}
