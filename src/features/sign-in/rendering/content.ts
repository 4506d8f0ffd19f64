/** What pages consist of. */
import type { HtmlEscapedString } from 'hono/utils/html'

/** Text that is escaped, or the result of hono's `html`. */
export type PageContent = string | HtmlEscapedString | Promise<HtmlEscapedString>
