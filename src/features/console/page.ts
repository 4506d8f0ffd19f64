/** What a page of the console is, and what it uses. */
import type * as z from 'zod/mini'
import type { CallInput } from '../../routes/admin/call.ts'
import type { ConsolePage, Notice } from './layout.ts'

export type Query = Readonly<Record<string, string | undefined>>

/** The operators' calls, with the rights of the visitor, and the input of the browser. */
export interface Desk {
  /** Without empty values, which forms send. */
  readonly query: Query
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Returns a parameter of the path. */
  param(name: string): string
  /** Reports whether the gateway has the call and the visitor its permission. */
  may(id: string): boolean
  /** Runs a call. Returns undefined if the visitor may not make it, or the gateway does not have it. */
  read<Schema extends z.core.$ZodType>(
    id: string,
    schema: Schema,
    input?: CallInput,
  ): Promise<z.output<Schema> | undefined>
  /** As `read`. Returns undefined as well without an audit database, which the page reports. */
  readAudit<Schema extends z.core.$ZodType>(
    id: string,
    schema: Schema,
    input?: CallInput,
  ): Promise<z.output<Schema> | undefined>
  /** Runs a call. Throws `Denied` if the visitor may not make it, or the gateway does not have it. */
  act(id: string, input: CallInput): Promise<unknown>
  /** Reads the form. The visitor is admitted again: a revocation is in force while a body is slow. */
  form(): Promise<URLSearchParams>
  /** The id of the last event of a stream that the browser has received. Undefined: it opens a new stream. */
  readonly lastEventId: string | undefined
  /**
   * Counts a stream of the visitor, until the returned function is called, or the time. Throws `Denied` if the visitor
   * has too many.
   */
  holdStream(untilMs: number): () => void
  /** Admits the visitor again. Throws `Denied` if its rights have ended. */
  readmit(): Promise<void>
  /** Adds the reason of the visitor to the audit event. */
  recordReason(reason: string): void
  /**
   * Names that forms offer: none to an operator of a tenant. A form is offered only to visitors who may make its call.
   */
  readonly names: {
    readonly roles: readonly string[]
    /** The permissions of the routes of the policy. */
    readonly scopes: readonly string[]
    readonly issuers: readonly string[]
  }
  /** Leads to a page of the console, which shows the notice once. */
  leadTo(path: string, notice: Notice): Promise<ConsolePage | Response>
}

/** A page, or what a form of a page leads to. */
export interface PageDefinition {
  /** Default `GET`. `POST` reads a form. */
  readonly method?: 'GET' | 'POST'
  /** Below `/-/console`. */
  readonly path: string
  /** The id of its operation, before `Console`. */
  readonly id: string
  /** The name in the navigation. Default: not part of it. */
  readonly name?: string
  /**
   * Operators' calls: without one of them, the gateway has no such page, and without the permission of one, the page is
   * not in the navigation and is refused (403). Default: the page needs none.
   */
  readonly needs?: readonly string[]
  /** Whether operators of a tenant are refused. Default false. */
  readonly isOfPlatform?: boolean
  /** What the policy lacks if the gateway does not have that call. */
  readonly absent?: string
  /** Whether it changes something, and needs the login that `console()` demands for changes. Default false. */
  readonly changes?: boolean
  show(desk: Desk): Promise<ConsolePage | Response> | ConsolePage | Response
}
