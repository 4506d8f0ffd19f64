/** Port: what judges the texts of a request. */
import type { Tally } from '../isolate/tally.ts'
import type { Denial } from '../problems/reasons.ts'
import type { Feature } from '../validators/feature.ts'
import type { Mode } from '../validators/mode.ts'
import type { InspectionLimits } from './limits.ts'

/** The rules that a text matches, one bit for each rule. */
export type Verdict = number

export interface RequestScan {
  add(text: string): void
  /** The rules that any of the texts matched. */
  readonly verdict: Verdict
}

/** The parameters of a request so far, from its query and its form. */
export interface ParametersSeen {
  readonly names: Set<string>
  count: number
  readonly scan?: RequestScan | undefined
}

/** Inspects a multipart body. Throws `Denied`. */
export type MultipartInspection = (
  body: Uint8Array,
  limits: InspectionLimits,
  seen: ParametersSeen,
) => void

/** The attack signatures of a route, as `signatures()` creates them. */
export interface SignatureJudge extends Feature<'signatures'> {
  readonly mode: Mode
  /** Hits and misses of the verdict cache, which all routes share. */
  readonly tally: Tally
  /** Starts with the path of the URL and the headers, by lower-case name. */
  begin(url: string, headers: ReadonlyMap<string, string>): RequestScan
  /**
   * Returns the inspection of a body of this `Content-Type`; undefined if it is not
   * `multipart/form-data`. The parser is here, so that only policies with signatures bundle it.
   */
  multipartInspection(contentType: string | undefined): MultipartInspection | undefined
  /** Returns the denials (403) for a verdict: one for each category that reaches the threshold. */
  denialsOf(verdict: Verdict): readonly Denial[]
}
