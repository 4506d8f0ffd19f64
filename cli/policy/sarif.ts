/** Findings in the Static Analysis Results Interchange Format (SARIF) 2.1.0. */
import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import type { PlacedFinding } from './finding.ts'
import { RULES } from './lints.ts'
import { INVALID } from './mistakes.ts'

const LEVELS = { error: 'error', warning: 'warning', info: 'note' } as const
const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'

const DESCRIPTIONS: readonly (readonly [id: string, text: string, level: string])[] = [
  [INVALID, 'The gateway does not start with this policy.', LEVELS.error],
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
        results: findings.map(({ rule, severity, message, suggestion, place }) => ({
          ruleId: rule,
          ruleIndex: DESCRIPTIONS.findIndex(([id]) => id === rule),
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
