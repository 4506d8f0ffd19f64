/** The bounds of the inspection of one request. */
export interface InspectionLimits {
  readonly maxDepth: number
  readonly maxNames: number
  readonly maxStringChars: number
  readonly repeatable: readonly string[]
}
