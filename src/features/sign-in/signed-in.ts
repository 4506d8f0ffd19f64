/** What the sign-in offers to other features with pages for people. */
import { createExchange } from '../../isolate/exchange.ts'
import type { BrowserSessionOptions, SessionStages } from './browser-session.ts'
import type { PageLanguage } from './rendering/language.ts'
import type { RenderPage } from './rendering/page.ts'
import type { SignedInUsers } from './signed-in-user.ts'

export const SIGNED_IN = createExchange<{
  /** The users of browsers. */
  readonly users: SignedInUsers
  /** Renders pages in the style of the policy. */
  readonly renderPage: RenderPage
  /** The languages of the pages besides English, for texts of other features. Default none. */
  readonly languages?: readonly PageLanguage[] | undefined
  /** Returns the host of a request if it is not that of `PUBLIC_URL`. Default: there are no others. */
  readonly otherHostOf?: ((url: string) => string | undefined) | undefined
  /** How many logins of an address fit in the limit of the sign-in. Default: as many as in its default. */
  readonly loginsPerMinute?: number | undefined
}>()

/** Creates the stages of a call of the gateway that accept the session of a browser. */
export const SESSION_STAGES =
  createExchange<
    (
      options: Pick<BrowserSessionOptions, 'asksForLogin' | 'demand' | 'isAttended'>,
    ) => SessionStages
  >()
