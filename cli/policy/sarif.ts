/** Findings in the Static Analysis Results Interchange Format (SARIF) 2.1.0. */
import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import type { MistakeCode } from '../../src/problems/mistake.ts'
import type { PlacedFinding } from './finding.ts'
import { RULES } from './lints.ts'

const LEVELS = { error: 'error', warning: 'warning', info: 'note' } as const
const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'

/** What each kind of mistake means. The gateway does not start with a policy that has one. */
const MISTAKES: Readonly<Record<MistakeCode, string>> = {
  invalid_element: 'An element of a collection is not valid.',
  invalid_format: 'A text does not have its format.',
  invalid_key: 'A name is not valid.',
  invalid_type: 'A value has a wrong type, or is missing.',
  invalid_union: 'A value has none of the possible forms.',
  invalid_value: 'A value is not valid.',
  not_multiple_of: 'A number is not a multiple of the required one.',
  too_big: 'A value is too large, or too long.',
  too_small: 'A value is too small, or too short.',
  unrecognized_keys: 'An object has a field that does not exist.',
  missing: 'A value is missing that another one requires.',
  conflict: 'Two values exclude each other.',
  duplicate: 'A name or a value exists twice.',
  missing_feature: 'A feature is missing that a part of the policy needs.',
  unsupported: 'The runtime cannot do this.',
  unused_setting: 'A setting has no effect, because its feature is missing.',
  unknown_limit: 'The policy has no limit with this name.',
  unknown_origin: 'The policy has no origin with this name.',
  unknown_parameter: 'The path of the route has no parameter with this name.',
  unknown_plan: 'The limit has no plan with this name.',
  unknown_relation: 'The model has no relation with this name.',
  unknown_route: 'The document has no route with this name.',
  unknown_type: 'The model has no type with this name.',
  invalid_model: 'The model of relations is not valid.',
  invalid_relation: 'The relation of a route or of a caller is not possible.',
  unreachable_route: 'A route above matches all requests of this one.',
  reserved_path: 'The path belongs to the gateway.',
  confusable_route: 'An origin could confuse two routes with different requirements.',
  dropped_keys: 'A schema drops unknown keys, which would still reach the origin.',
}

const DESCRIPTIONS: readonly (readonly [id: string, text: string, level: string])[] = [
  ...Object.entries(MISTAKES).map(([id, text]) => [id, text, LEVELS.error] as const),
  ...Object.entries(RULES).map(
    ([id, { reason, severity }]) => [id, reason, LEVELS[severity]] as const,
  ),
]

/** Returns the log of one run. Paths in it are relative to `root`, the folder of the project. */
export function sarifOf(findings: readonly PlacedFinding[], root: string): object {
  const base = `${pathToFileURL(root).href}/`
  return {
    $schema: SCHEMA,
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'portcullis',
            version: manifest.version,
            rules: DESCRIPTIONS.map(([id, text, level]) => ({
              id,
              shortDescription: { text },
              defaultConfiguration: { level },
            })),
          },
        },
        originalUriBaseIds: { PROJECT: { uri: base } },
        columnKind: 'utf16CodeUnits',
        results: findings.map(({ rule, code = rule, severity, message, suggestion, place }) => ({
          ruleId: code,
          ruleIndex: DESCRIPTIONS.findIndex(([id]) => id === code),
          level: LEVELS[severity],
          message: {
            text: suggestion === undefined ? message : `${message}. Suggestion: ${suggestion}.`,
          },
          locations: [
            {
              physicalLocation: {
                artifactLocation: {
                  uri: encodeURI(relative(root, place.file).replaceAll('\\', '/')),
                  uriBaseId: 'PROJECT',
                },
                region: { startLine: place.line, startColumn: place.column },
              },
            },
          ],
        })),
      },
    ],
  }
}
